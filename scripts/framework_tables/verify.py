"""Compares the tables with the packages themselves: the newest release of each is installed with what it needs,
and `inspect` says what is there. `crates/framework_api/examples/judge.rs` says what the tables make of it.

What exists must never be a fault. Of what does not exist, the share that is a fault is printed.
"""

import json
import re
import subprocess

# Runs in the environment of the package: one JSON line for each module.
LOOK = r'''
import importlib, inspect, json, pkgutil, sys, warnings, os
warnings.simplefilter("ignore")
os.environ.setdefault("OPENAI_API_KEY", "none")
roots = sys.argv[1:]

def modules(name):
    try:
        module = importlib.import_module(name)
    except BaseException:
        return
    yield name, module
    for info in pkgutil.iter_modules(getattr(module, "__path__", [])):
        if not info.name.startswith("_") and info.name not in ("tests", "cli", "templates", "__main__"):
            yield from modules(f"{name}.{info.name}")

def shape(value):
    try:
        signature = inspect.signature(value)
    except BaseException:
        return None
    names, required, positional, rest, args = [], [], 0, False, False
    for p in signature.parameters.values():
        if p.kind == p.VAR_KEYWORD:
            rest = True
        elif p.kind == p.VAR_POSITIONAL:
            args = True
        else:
            if p.kind != p.POSITIONAL_ONLY:
                names.append(p.name)
            else:
                return None
            positional += p.kind != p.KEYWORD_ONLY
            if p.default is p.empty:
                required.append(p.name)
    if args and rest and not names:
        # A wrapper hides the signature.
        return None
    return [names, required, None if args else positional, rest]

for root in roots:
    for name, module in modules(root):
        out = []
        for n in sorted(set(dir(module)) | set(getattr(module, "__all__", []))):
            # What `from __future__` binds, nobody imports from there.
            if n.startswith("_") or n == "annotations":
                continue
            try:
                value = getattr(module, n)
            except BaseException:
                continue
            kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else "value"
            own = str(getattr(value, "__module__", "")).split(".")[0] == root.split(".")[0]
            members = [m for m in dir(value) if not m.startswith("_")] if kind == "class" and own else []
            # Nobody calls a protocol.
            called = kind != "value" and own and not getattr(value, "_is_protocol", False)
            out.append([n, kind, shape(value) if called else None, members])
        print(json.dumps([name, out]), flush=True)
'''


# What a package needs to be imported and does not require itself.
NEEDS = {"langgraph-prebuilt": ["langgraph"], "autogen-ext": ["autogen-agentchat"]}


def run(root, cache, uv, packages):
    judge = root / "target" / "debug" / "examples" / "judge"
    if not judge.exists():
        subprocess.run(["cargo", "build", "-q", "-p", "framework_api", "--example", "judge"], cwd=root, check=True)
    failed = 0
    for package in packages:
        table = (root / "crates" / "framework_api" / "tables" / f"{package}.txt").read_text()
        version = re.findall(r"^release (\S+) ", table, re.M)[-1]
        roots = sorted({m if m.startswith("google.adk") else m.split(".")[0]
                        for m in re.findall(r"^module (\S+)$", table, re.M)
                        if not m.startswith("google") or m == "google.adk"})
        venv = cache / "verify" / package
        if not (venv / "bin" / "python").exists():
            subprocess.run([uv, "venv", "-q", str(venv)], check=True)
        install = [uv, "pip", "install", "-q", "--python", str(venv / "bin" / "python"), f"{package}=={version}",
                   *NEEDS.get(package, [])]
        got = subprocess.run(install, capture_output=True, text=True)
        if got.returncode:
            print(f"{package} {version}: not installed: {got.stderr.strip()[-200:]}")
            continue
        looked = subprocess.run([str(venv / "bin" / "python"), "-c", LOOK, *roots], capture_output=True, text=True)
        queries, expected = [], []

        def ask(query, ok, bad=None):
            queries.append(query)
            expected.append((ok, bad))

        for line in looked.stdout.splitlines():
            if not line.startswith("["):
                continue
            module, names = json.loads(line)
            ask(f"import {module} zz_unknown", False, "name:zz_unknown")
            for name, kind, shape, members in names:
                ask(f"import {module} {name}", True)
                if shape is not None:
                    keywords, required, positional, rest = shape
                    ask(f"call {module}.{name} 0 {','.join(keywords)}", True)
                    # Of functions with `**kwargs`, the table says whether their bodies take unknown names.
                    ask(f"call {module}.{name} ? {','.join(keywords)},zz_unknown", None if rest else False, "argument:zz_unknown")
                    ask(f"call {module}.{name} 0", not required, "missing:")
                    if positional is not None:
                        ask(f"call {module}.{name} {positional}", True if not required else None)
                        ask(f"call {module}.{name} {positional + 1}", None, "positional:")
                for member in members:
                    ask(f"member {module}.{name} {member}", True)
                if members:
                    ask(f"member {module}.{name} zz_unknown", False, "name:zz_unknown")
        answers = subprocess.run([str(judge), f"{package}=={version}"], input="\n".join(queries) + "\n",
                                 capture_output=True, text=True, check=True).stdout.splitlines()
        wrong, asked, found, good, closed = [], 0, 0, 0, 0
        for query, (ok, bad), answer in zip(queries, expected, answers):
            if ok is True:
                good += 1
                if answer != "-":
                    wrong.append(f"{query[:160]}: {answer[:120]}")
            elif ok is None:
                closed += answer.startswith("argument:zz_unknown")
            elif bad:
                asked += 1
                found += bad in answer
        failed += bool(wrong)
        print(f"{package} {version}: {good} uses that work, {len(wrong)} of them at fault; "
              f"{asked} that fail, {found} found ({100 * found // max(asked, 1)} %); {closed} with `**kwargs` that take no other", flush=True)
        for line in wrong[:25]:
            print(f"    {line}")
    return 1 if failed else 0
