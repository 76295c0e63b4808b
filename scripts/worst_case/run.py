"""Runs each program of suite/worst_case against several adversaries and compares what it asks with its stated bound.

A program is a folder with `main.py` and, where it needs them, `worst.json`: `strategies` (further ones, see `adversary.py`),
`values` and `say` (for all strategies). Real calls are those that the model answers: a request that the server refuses is
repeated by the client and is no call. A tool call is one whose result the model is told.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "faithful"))

from adversary import Adversary  # noqa: E402
from compare import environment  # noqa: E402

SUITE = ROOT / "suite" / "worst_case"
MODULES = {
    "openai_agents": ["agents"],
    "crewai": ["crewai", "crewai.tools"],
    "autogen": ["autogen_agentchat.agents", "autogen_agentchat.teams", "autogen_ext.models.openai"],
    "autogen_classic": ["autogen"],
    "adk": ["google.adk.agents", "google.adk.runners", "google.adk.models.lite_llm"],
    "pydantic_ai": ["pydantic_ai", "pydantic_ai.models.openai"],
    "smolagents": ["smolagents"],
    "langgraph": ["langgraph.graph", "langgraph.prebuilt", "langchain.agents", "langchain_openai", "langgraph_supervisor"],
}
STRATEGIES = [
    {"name": "one call, low data", "tools": "one", "data": "low"},
    {"name": "all calls, high data", "tools": "all", "data": "high"},
    {"name": "many calls in a reply", "tools": "many", "data": "low"},
    {"name": "long lists", "tools": "never", "data": "long"},
    {"name": "one call then text", "tools": 1, "data": "low"},
    {"name": "three calls then text", "tools": 3, "data": "high"},
    {"name": "handoffs", "tools": "handoff", "data": "low"},
    {"name": "no call, low data", "tools": "never", "data": "low"},
    {"name": "no call, high data", "tools": "never", "data": "high"},
    {"name": "garbage", "tools": "never", "data": "garbage", "say": "{\"broken"},
    {"name": "calls, then empty replies", "tools": "one", "data": "low", "say": ""},
    {"name": "empty replies", "tools": "never", "data": "garbage", "say": ""},
    {"name": "refusals", "tools": 1, "data": "low", "refuse": 3},
    {"name": "one refusal", "tools": "one", "data": "low", "refuse": 1},
]
SECONDS = 90
HIGHEST_CAP = 300
UNBOUNDED_CAP = 60


class Framework:
    """A process that has loaded a framework and runs programs in children."""

    def __init__(self, name):
        python = ROOT / "target" / "faithful" / name / "bin" / "python"
        runner = str(ROOT / f"scripts/faithful/run_{name}.py")
        command = [str(python), str(ROOT / "scripts/faithful/forked.py"), runner, *MODULES[name]]
        self.home = tempfile.TemporaryDirectory()
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        env |= {
            "HOME": self.home.name,
            "CREWAI_STORAGE_DIR": self.home.name,
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "OTEL_SDK_DISABLED": "true",
            "OPENAI_API_KEY": "none",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.lock = threading.Lock()

    def run(self, program, adversary):
        """Returns the exit status and the end of standard error."""
        with self.lock, tempfile.TemporaryDirectory() as folder:
            env = environment(adversary)
            env |= {"HOME": folder, "CREWAI_STORAGE_DIR": folder}
            names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_AGENTS_DISABLE_TRACING", "HOME", "CREWAI_STORAGE_DIR")
            job = {
                "program": str(program),
                "env": {k: env[k] for k in names},
                "cwd": folder,
                "out": f"{folder}/.out",
                "err": f"{folder}/.err",
                "seconds": SECONDS,
            }
            print(json.dumps(job), file=self.process.stdin, flush=True)
            pid = json.loads(self.process.stdout.readline())["pid"]
            adversary.stop = lambda: kill(pid)
            code = json.loads(self.process.stdout.readline())["code"]
            adversary.stop = lambda: None
            return code, pathlib.Path(f"{folder}/.err").read_text(errors="replace")[-1500:]

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.home.cleanup()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stated(entail, program):
    """The most model calls and tool calls of all entries; `None` where no bound is stated."""
    done = subprocess.run([entail, "cost", "--format", "json", str(program)], capture_output=True, text=True, timeout=120)
    entries = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    entries = [e for e in entries if "modelCalls" in e]
    if not entries:
        return None, None, (done.stdout + done.stderr).strip()[-300:] or "no entry"
    why = "; ".join(u["why"] for e in entries for u in e.get("unbounded", []))
    most = lambda key: None if any(e[key]["most"] is None for e in entries) else sum(e[key]["most"] for e in entries)
    return most("modelCalls"), most("toolCalls"), why


def measured(framework, program, entail, log):
    """What one program asks at worst, beside its bound."""
    models, tools, why = stated(entail, program)
    hints = program.parent / "worst.json"
    hints = json.loads(hints.read_text()) if hints.exists() else {}
    text = "".join(p.read_text() for p in program.parent.rglob("*.py"))
    functions = {line.split("(")[0].split()[-1] for line in text.splitlines() if line.strip().startswith(("def ", "async def "))}
    cap = UNBOUNDED_CAP if models is None else min(max(5 * models, models + 20), HIGHEST_CAP)
    row = {"program": f"{program.parents[1].name}/{program.parent.name}", "stated": models, "statedTools": tools}
    row |= {"real": 0, "realTools": 0, "strategy": "", "cap": cap, "why": why, "failed": ""}
    own = [{"name": f"own {i}", **s} for i, s in enumerate(hints.get("strategies", []), 1)]
    errors = []
    for strategy in [*own, *STRATEGIES]:
        strategy = {**{k: hints[k] for k in ("values", "say", "json") if k in hints and k not in strategy}, **strategy}
        adversary = Adversary(strategy, cap, functions)
        code, error = framework.run(program, adversary)
        adversary.shutdown()
        adversary.server_close()
        if log:
            last = error.strip().splitlines()[-1:] if code else []
            print(f"    {row['program']} {strategy['name']}: {adversary.answered} asked, {len(adversary.results)} tools, {code} {last}", flush=True)
        if code:
            errors.append(error)
        if adversary.answered > row["real"]:
            row |= {"real": adversary.answered, "strategy": strategy["name"]}
        row["realTools"] = max(row["realTools"], len(adversary.results))
        if row["real"] >= cap:
            break
    if row["real"] == 0:
        row["failed"] = (errors or ["no request was made"])[0]
    row["verdict"] = verdict(row)
    return row


def verdict(row):
    if row["failed"]:
        return "failed"
    over = row["stated"] is not None and row["real"] > row["stated"]
    if over or row["statedTools"] is not None and row["realTools"] > row["statedTools"]:
        return "EXCEEDED"
    if row["stated"] is None:
        # Nothing but the cap ended it: there is no bound to state.
        return "unbounded" if row["real"] >= row["cap"] else "unknown"
    return "tight" if row["real"] == row["stated"] else "held"


def shown(row):
    number = lambda n: "-" if n is None else str(n)
    line = f"{row['program']:<48} {number(row['stated']):>7} {row['real']:>5} {number(row['statedTools']):>6} {row['realTools']:>5}"
    note = row["failed"][-400:] if row["failed"] else row["why"][:110] if row["stated"] is None else row["strategy"]
    return f"{line}  {row['verdict']:<9} {note}"


def of_framework(name, programs, args):
    framework = Framework(name)
    rows = []
    for program in programs:
        row = measured(framework, program, args.entail, args.log)
        print(shown(row), flush=True)
        rows.append(row)
    framework.end()
    return rows


def record(rows):
    """Keeps the calls that were measured: the test of the bounds without the frameworks reads them."""
    path = SUITE / "measured.tsv"
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    known = {line.split("\t")[0]: line for line in lines}
    known |= {r["program"]: f"{r['program']}\t{r['real']}\t{r['realTools']}" for r in rows if not r["failed"]}
    there = {k: v for k, v in known.items() if (SUITE / k / "main.py").exists()}
    path.write_text("\n".join(["program\tmodel calls\ttool calls", *(there[k] for k in sorted(there))]) + "\n")


def table(rows):
    """Prints the verdicts of each framework."""
    names = [*dict.fromkeys(r["program"].split("/")[0] for r in rows), "all"]
    print(f"{'framework':<16} {'programs':>8} {'exceeded':>8} {'tight':>6} {'finite':>6} {'unknown':>7} {'unbounded':>9} {'failed':>6}")
    for name in names:
        some = [r for r in rows if name in ("all", r["program"].split("/")[0])]
        count = lambda v: sum(r["verdict"] == v for r in some)
        finite = sum(r["stated"] is not None and r["verdict"] != "failed" for r in some)
        counts = f"{count('EXCEEDED'):>8} {count('tight'):>6} {finite:>6} {count('unknown'):>7} {count('unbounded'):>9} {count('failed'):>6}"
        print(f"{name:<16} {len(some):>8} {counts}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entail", default=str(ROOT / "target/debug/entail"))
    parser.add_argument("--json", help="a file that the results are written to")
    parser.add_argument("--log", action="store_true", help="print each run")
    parser.add_argument("--record", action="store_true", help="write what was measured to suite/worst_case/measured.tsv")
    parser.add_argument("which", nargs="?", default="")
    args = parser.parse_args()
    programs = {}
    for program in sorted(SUITE.glob("*/*/main.py")):
        framework = program.parents[1].name
        if f"{framework}/{program.parent.name}".startswith(args.which):
            programs.setdefault(framework, []).append(program)
    print(f"{'program':<48} {'stated':>7} {'real':>5} {'tools':>6} {'real':>5}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = [pool.submit(of_framework, name, some, args) for name, some in programs.items()]
        rows = [row for d in done for row in d.result()]
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    if args.record:
        record(rows)
    count = lambda v: sum(r["verdict"] == v for r in rows)
    table(rows)
    return 1 if count("EXCEEDED") or count("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
