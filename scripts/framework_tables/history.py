"""The history of an interface over releases, as a text of which only what changes costs a line."""

import re


def ranges(numbers, releases):
    """`@1.0..1.2,1.4..` for the releases that have something; nothing if all have it."""
    out, start = [], None
    for i in range(len(releases) + 1):
        has = i < len(releases) and i in numbers
        if has and start is None:
            start = i
        elif not has and start is not None:
            since = releases[start][0] if start else ""
            until = releases[i][0] if i < len(releases) else ""
            out.append(f"{since}..{until}")
            start = None
    return "" if out == [".."] else " @" + ",".join(out)


def write(package, also, releases, interfaces):
    """The table of a package: its releases with their days, and its modules with what they have. `also` are
    packages of the same versions that require it."""
    seen = {}
    for i, interface in enumerate(interfaces):
        for key, content in interface.items():
            content = re.sub(r"\s@", " ", content)
            seen.setdefault(key, {}).setdefault(content, set()).add(i)
    lines = ["entail framework table 1", f"package {package}"]
    lines += [f"also {name}" for name in also]
    lines += [f"release {version} {day}" for version, day in releases]
    modules = {}
    for key in seen:
        modules.setdefault(key[0], {}).setdefault(key[1] if len(key) > 1 else None, []).append(key)
    for module in sorted(modules):
        lines.append(f"module {module}")
        for content, numbers in ordered(seen.get((module,), {})):
            lines.append(f"={content}{ranges(numbers, releases)}")
        values = {}
        names = modules[module]
        for name in sorted(n for n in names if n is not None):
            contents = seen.get((module, name), {})
            for content, numbers in ordered(contents):
                if content == "v":
                    values.setdefault(ranges(numbers, releases), []).append(name)
                else:
                    lines.append(f" {name} {content}{ranges(numbers, releases)}")
            plain = {}
            for key in sorted(k for k in names[name] if len(k) > 2):
                for content, numbers in ordered(seen[key]):
                    if content == "v":
                        plain.setdefault(ranges(numbers, releases), []).append(key[2])
                    else:
                        lines.append(f"  {key[2]} {content}{ranges(numbers, releases)}")
            for when in sorted(plain):
                lines.append(f"  : {' '.join(plain[when])}{when}")
        for when in sorted(values):
            lines.append(f" : {' '.join(values[when])}{when}")
    return "\n".join(lines) + "\n"


def ordered(contents):
    """Contents by the first release that has them."""
    return sorted(contents.items(), key=lambda c: (min(c[1]), c[0]))
