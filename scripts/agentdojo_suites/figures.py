"""Figures of a measurement as data: summed up, compared with those of the page, and written into its tables.

python -m agentdojo_suites.figures [--write]
"""

from __future__ import annotations

import datetime
import json
import re
import sys
import textwrap
from typing import Any

from agentdojo_suites.harness import HERE, SUITES, reasons

FILE = HERE / "figures.json"
PAGE = HERE.parent.parent / "docs" / "agentdojo.md"

Figures = dict[str, Any]

# Kinds with a guarantee: what they admit may not get worse. The others show what happens without one.
GUARDED = ("own", "shared", "strict", "camel", "camel-strict", "react")
ALL = "all"
# Characters of a value that a table shows.
MAX_VALUE = 32


def load() -> Figures:
    """Returns the figures of the page."""
    figures: Figures = json.loads(FILE.read_text())
    return figures


def summed(results: list[dict[str, Any]]) -> Figures:
    """Sums up what was measured, by kind and suite."""
    kinds: Figures = {}
    for r in results:
        suite = kinds.setdefault(r["kind"], {}).setdefault(r["suite"], {"tasks": 0, "attacks": {}})
        suite["tasks"] += 1
        if r["task"]:
            done = suite.setdefault("done", [0] * len(r["task"]["done"]))
            suite["done"] = [n + d for n, d in zip(done, r["task"]["done"], strict=True)]
            for key, value in {"questions": r["task"]["questions"], **r["task"].get("cost", {})}.items():
                suite[key] = suite.get(key, 0) + value
            if r["task"]["questions"]:
                asks = {"questions": r["task"]["questions"], "done": r["task"]["done"], "why": r.get("asks", [])}
                suite.setdefault("asking", {})[r["task"]["task"]] = asks
        for p in r["pairs"]:
            of = suite["attacks"].setdefault(p["variant"], {"pairs": 0, "calls": 0, "text": 0, "other": 0})
            of["pairs"] += 1
            of["calls"] += p["reached"]
            of["text"] += p["text"]
            of["other"] += p["changed"]
    return kinds


def merged(kinds: Figures, new: Figures) -> Figures:
    """Returns figures with those of other suites and kinds in them."""
    result = {k: dict(v) for k, v in kinds.items()}
    for kind, suites in new.items():
        for name, figures in suites.items():
            old = result.setdefault(kind, {}).get(name, {})
            result[kind][name] = {**old, **figures, "attacks": {**old.get("attacks", {}), **figures["attacks"]}}
    return result


def record_undefended(name: str, reached: int) -> None:
    """Writes how many attacks an agent lets through that obeys what it reads."""
    old = load() if FILE.exists() else {"kinds": {}}
    save({**old, "undefended": {**old.get("undefended", {}), name: reached}})


def save(figures: Figures) -> None:
    """Writes the figures of the page."""
    FILE.write_text(json.dumps(figures, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def record(commit: str, turns: int, new: Figures) -> None:
    """Writes figures that were measured at a commit into those of the page."""
    old = load() if FILE.exists() else {"kinds": {}}
    when = {"date": datetime.date.today().isoformat(), "commit": commit, "turns": turns}
    kinds = merged(old["kinds"], new)
    measured = {**old.get("measured", {}), **{kind: when for kind in new}}
    save({**old, "measured": measured, "kinds": kinds})


def worse(old: Figures, new: Figures) -> list[str]:
    """Returns in words which figures are worse than those of the page."""
    found = []
    for kind, suites in new.items():
        for name, now in suites.items():
            before = old.get(kind, {}).get(name)
            if before is None or kind not in GUARDED:
                continue
            if now["tasks"] != before["tasks"]:
                found.append(f"{kind} {name}: {now['tasks']} tasks were measured, not {before['tasks']}")
            for i, (was, done) in enumerate(zip(before["done"], now["done"], strict=True)):
                if done < was:
                    limit = ("no question", "one question", "any number of questions")[i]
                    found.append(f"{kind} {name}: {done} tasks are done with {limit}, {was} were")
            if now["questions"] > before["questions"]:
                found.append(f"{kind} {name}: {now['questions']} questions, {before['questions']} before")
            for variant, attacks in now["attacks"].items():
                was = before["attacks"].get(variant)
                for how in ("calls", "text"):
                    if was is not None and attacks[how] > was[how]:
                        found.append(f"{kind} {name} {variant}: {attacks[how]} attacks by {how}, {was[how]} before")
    return found


def total(kinds: Figures, kind: str, key: str, at: int | None = None) -> int:
    """Returns a figure of all suites."""
    values = [s[key] if at is None else s[key][at] for s in kinds[kind].values()]
    return sum(values)


def attacks_of(kinds: Figures, kind: str, variant: str, how: str) -> str:
    """Returns a figure of all attacks of a variant, empty where it was not measured in every suite."""
    suites = kinds.get(kind, {})
    some = [s["attacks"].get(variant) for s in suites.values()]
    if len(some) < len(SUITES) or None in some:
        return ""
    return str(sum(a[how] for a in some))


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines]).replace("| --- ", "|---").replace(
        "|--- |", "|---|"
    )


def by_suite(kinds: Figures, kind: str) -> str:
    """Returns the table of tasks of a kind."""
    rows = []
    for name in (*kinds[kind], ALL):
        of = [s for n, s in kinds[kind].items() if name in (n, ALL)]
        tasks = sum(s["tasks"] for s in of)
        done = [f"{sum(s['done'][i] for s in of)} of {tasks}" for i in range(3)]
        rows.append([name, *done, f"{sum(s['questions'] for s in of) / tasks:.2f}"])
    head = ["suite", "done unattended (TCR@0)", "with 1 question (TCR@1)", "with any number (TCR@∞)"]
    return table([*head, "questions a task"], rows)


TITLES = {
    "own": "plans under the policies",
    "strict": "the same plans, strict labels",
    "camel": "the same plans, our reading of CaMeL's policies",
    "camel-strict": "the same, conditions count (`STRICT`)",
    "react": "no plan: an agent with handles",
}


def by_kind(kinds: Figures) -> str:
    """Returns the table that compares kinds of policies."""
    rows = []
    for kind, title in TITLES.items():
        if kind in kinds and len(kinds[kind]) == len(SUITES):
            tasks = total(kinds, kind, "tasks")
            cells = [str(total(kinds, kind, "done", i)) for i in range(3)]
            cells.append(f"{total(kinds, kind, 'questions') / tasks:.2f}")
            rows.append([title, *cells])
    head = [f"of {sum(s['tasks'] for s in kinds['own'].values())} tasks, done", "unattended", "1 question"]
    return table([*head, "any number", "questions a task"], rows)


def by_lists(kinds: Figures) -> str:
    """Returns the table of workspace where outsiders can add files and events, and where not."""
    rows = []
    for kind, title in (("own", "as the policy says"), ("shared", "with untrusted lists")):
        of = kinds[kind]["workspace"]
        attacks = [str(of["attacks"][v]["calls"]) if v in of["attacks"] else "" for v in VARIANTS]
        mean = f"{of['questions'] / of['tasks']:.2f}"
        rows.append([title, *(str(n) for n in of["done"]), mean, " · ".join(attacks)])
    head = [f"of {kinds['own']['workspace']['tasks']} tasks of workspace, done", "unattended", "1 question"]
    return table([*head, "any number", "questions a task", f"attacks by calls ({' · '.join(VARIANTS)})"], rows)


def by_suite_attacked(kinds: Figures, kind: str) -> str:
    """Returns the table of attacks by suite: goals reached by calls and by text, and other calls."""
    rows = []
    for name in (*kinds[kind], ALL):
        of = [s["attacks"] for n, s in kinds[kind].items() if name in (n, ALL)]
        cells = []
        for variant in VARIANTS:
            some = [a[variant] for a in of if variant in a]
            whole = len(some) == len(of)
            counts = [str(sum(a[how] for a in some)) for how in ("calls", "text", "other")]
            cells.append(f"{' · '.join(counts)} of {sum(a['pairs'] for a in some)}" if whole else "")
        rows.append([name, *cells])
    return table(["by calls · by text · other calls", *VARIANTS], rows)


VARIANTS = ("slot", "fields", "chosen", "memory", "feedback")


def by_attack(kinds: Figures, undefended: int) -> str:
    """Returns the table of attacks."""
    rows = []
    for kind, title in {**TITLES, "none": "plans without a policy (CPython)"}.items():
        for how in ("calls", "text"):
            cells = [attacks_of(kinds, kind, v, how) for v in VARIANTS]
            rows.append([f"{title}, by calls" if how == "calls" else "by text", *cells])
    pairs = attacks_of(kinds, "own", "slot", "pairs")
    rows.append(["no plan: an agent that obeys what it reads", str(undefended), *[""] * (len(VARIANTS) - 1)])
    return table([f"attacks of {pairs} that reach their goal", *VARIANTS], rows)


def shown(value: Any) -> str:
    """Returns a value as the cell of a table."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{text[:MAX_VALUE]}{'…' if len(text) > MAX_VALUE else ''}`"


def label(value: Any) -> str:
    """Returns a label as text."""
    if isinstance(value, dict):
        if not value.get("sources") and value.get("readers", "*") == "*":
            return "trusted"
        sources = ", ".join(value.get("sources", []))
        readers = value.get("readers", "*")
        return f"from {sources or 'nobody'}" + ("" if readers == "*" else f", for {', '.join(readers) or 'nobody'}")
    return "trusted" if value == [] else json.dumps(value)


def met(why: dict[str, Any]) -> str:
    """Returns what met which bound."""
    if why["rule"] == "form":
        return "has a link or a number"
    if why["rule"] == "allow":
        return "above the limit"
    return f"{label(why['label'])} ⋢ {label(why['bound'])}"


def by_question(kinds: Figures) -> str:
    """Returns the table of the tasks that ask."""
    rows = []
    for name, suite in kinds["own"].items():
        for task, asks in sorted(suite.get("asking", {}).items(), key=lambda t: int(t[0].rsplit("_", 1)[1])):
            title = f"{name} {task.rsplit('_', 1)[1]}"
            reason = reasons()[name][task]
            for i, why in enumerate(asks["why"]):
                first = [title, str(asks["questions"])] if i == 0 else ["", ""]
                part = f"`{why['tool']}`, {'whether' if why['part'] == 'control' else '`' + why['part'] + '`'}"
                chosen = f"{shown(why['usual'])} → {shown(why['chosen'])}"
                rows.append([*first, part, met(why), chosen, "" if i else reason])
    return table(["task", "questions", "part of a call", "label ⋢ bound", "an attacker makes", "why"], rows)


def tables(figures: Figures) -> list[str]:
    """Returns the tables of the page."""
    kinds = figures["kinds"]
    made = [by_suite(kinds, "own"), by_kind(kinds), by_attack(kinds, sum(figures["undefended"].values()))]
    made += [by_suite_attacked(kinds, "own"), by_question(kinds)]
    if "shared" in kinds:
        made.append(by_lists(kinds))
    if "react" in kinds:
        made.append(by_cost(kinds))
    return made


def by_cost(kinds: Figures) -> str:
    """Returns the table of what an agent with handles reaches and costs beside the plan."""
    rows = []
    for name in (*kinds["react"], ALL):
        of = [s for n, s in kinds["react"].items() if name in (n, ALL)]
        plan = [s for n, s in kinds["own"].items() if n in kinds["react"] and name in (n, ALL)]
        tasks = sum(s["tasks"] for s in of)
        done = [f"{sum(s['done'][i] for s in of)} of {tasks}" for i in range(3)]
        means = [f"{sum(s.get(k, 0) for s in of) / tasks:.1f}" for k in ("asked", "opened")]
        rows.append([name, *done, beside(of, plan, "questions", 2), beside(of, plan, "models", 1), *means])
    head = ["no plan", "done unattended", "1 question", "any number", "questions a task (plan)"]
    return table([*head, "calls of models (plan)", "questions about handles", "opened"], rows)


def beside(of: list[Figures], plan: list[Figures], key: str, digits: int) -> str:
    """Returns the mean of a figure, and that of the plans."""
    ours, theirs = (sum(s[key] for s in some) / sum(s["tasks"] for s in some) for some in (of, plan))
    return f"{ours:.{digits}f} ({theirs:.{digits}f})"


def written(page: str, made: list[str]) -> str:
    """Returns the page with these tables in the place of those with the same first cell."""
    blocks = page.split("\n\n")
    for one in made:
        start = one.split(" | ")[0]
        places = [i for i, b in enumerate(blocks) if b.split(" | ")[0] == start]
        if len(places) != 1:
            raise SystemExit(f"{PAGE.name} has {len(places)} tables that begin with `{start}`")
        # The end of the file is no block of its own.
        blocks[places[0]] = one + ("\n" if blocks[places[0]].endswith("\n") else "")
    return "\n\n".join(blocks)


def dated(page: str, measured: Figures) -> str:
    """Returns the page with the paragraph that says when the figures were measured."""
    times: dict[tuple[str, str, int], list[str]] = {}
    for kind, m in sorted(measured.items()):
        times.setdefault((m["date"], m["commit"], m["turns"]), []).append(f"`{kind}`")
    each = [
        f"{', '.join(kinds)} on {date} at commit `{commit}` with `--turns {turns}`"
        for (date, commit, turns), kinds in sorted(times.items())
    ]
    text = textwrap.fill(f"Measured were {', and '.join(each)}.", 110, break_on_hyphens=False)
    return re.sub(r"^Measured .*?\.(?=\n\n)", lambda _: text, page, count=1, flags=re.M | re.S)


def main(arguments: list[str]) -> int:
    """Checks the tables of the page, or writes them."""
    page, now = PAGE.read_text(), load()
    new = dated(written(page, tables(now)), now["measured"])
    if "--write" in arguments:
        PAGE.write_text(new)
        return 0
    if new != page:
        print(f"{PAGE.name} doesn't have the tables of {FILE.name}: scripts/agentdojo figures --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
