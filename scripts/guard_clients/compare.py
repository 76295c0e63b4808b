"""Compares what real clients see of real servers with and without `entail guard` between them.

compare.py ENTAIL MODULES PYTHON [SERVER…]: the command, the folder of npm's packages, the Python with the servers.
"""

import copy
import functools
import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

# Parts of texts that differ between two runs of a server alone.
VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\d?\d:\d\d:\d\d( ?[AP]M)?"), "TIME"),
    (re.compile(r'\\?"(_|PWD|OLDPWD|SHLVL)\\?": \\?"[^"]*",?'), "ENV"),
    (re.compile(r'"progressToken": ?("[^"]*"|\d+)'), '"progressToken": TOKEN'),
]


def normal(value: Any) -> Any:
    """The value without what differs between two runs of a server alone."""
    if isinstance(value, str):
        for pattern, instead in VARYING:
            value = pattern.sub(instead, value)
        return value
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, dict):
        return {key: "TOKEN" if key == "progressToken" else normal(item) for key, item in value.items()}
    return value


def expected(view: dict[str, Any], approved: bool) -> dict[str, Any]:
    """What a guard lets through of the view without it. docs/guard.md states each of these differences."""
    view = copy.deepcopy(view)
    # Results of tasks would pass unlabeled.
    view["start"]["capabilities"].pop("tasks", None)
    # Only what was approved is left of an approved tool.
    lists = [seen for what, seen in view.items() if what in ("tools", "inspector tools/list")]
    for tools in lists if approved else []:
        for tool in tools["tools"]:
            for name in ("title", "icons", "_meta"):
                tool.pop(name, None)
            for name, value in list(tool.get("annotations", {}).items()):
                if not isinstance(value, bool):
                    del tool["annotations"][name]
    # The guard answers for a tool that nobody listed.
    for what, seen in view.items():
        if approved and what.startswith("call no-such-tool"):
            seen["result"]["content"][0]["text"] = "refused"
    return view


def differences(path: str, left: Any, right: Any) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        keys = sorted({*left, *right})
        return [d for key in keys for d in differences(f"{path}/{key}", left.get(key), right.get(key))]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [d for at, pair in enumerate(zip(left, right)) for d in differences(f"{path}/{at}", *pair)]
    if left == right:
        return []
    show = functools.partial(json.dumps, ensure_ascii=False)
    return [f"{path}\n      bare    {show(left)[:600]}\n      guarded {show(right)[:600]}"]


def fill(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, names) for key, item in value.items()}
    return value


def fresh(folder: Path) -> None:
    """The folder that servers work in, the same at each beginning."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "a.txt").write_text("eins\nzwei\n")
    env = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    for command in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "begin"]):
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *who, *command], cwd=folder, check=True, env={**os.environ, **env})
    (folder / "a.txt").write_text("eins\ndrei\n")


def main() -> int:
    entail, modules, python = sys.argv[1:4]
    scenarios = json.loads((HERE / "scenarios.json").read_text())
    chosen = sys.argv[4:] or list(scenarios)
    base = Path(tempfile.mkdtemp(prefix="guard-clients-"))
    pages = base / "pages"
    pages.mkdir()
    (pages / "page.html").write_text("<html><body><h1>Hours</h1><p>From 9 to 5.</p></body></html>")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=str(pages)))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    # Node finds its packages beside the program.
    (base / "node_modules").symlink_to(Path(modules).resolve())
    shutil.copy(HERE / "view.mjs", base / "view.mjs")
    folder = base / "folder"
    names = {"folder": str(folder), "modules": modules, "python": python, "port": str(web.server_port)}
    env = {**os.environ, "MEMORY_FILE_PATH": str(base / "memory.json"), "XDG_STATE_HOME": str(base / "state")}
    clients = {"typescript": ["node", str(base / "view.mjs")], "python": [python, str(HERE / "view.py")]}
    failed = 0
    for server in chosen:
        scenario = {**fill(scenarios[server], names), "cwd": str(base)}
        command = scenario["command"]
        (base / "scenario.json").write_text(json.dumps(scenario))

        def view(client: str, before: list[str]) -> dict[str, Any]:
            fresh(folder)
            (base / "memory.json").unlink(missing_ok=True)
            shutil.rmtree(base / "state", ignore_errors=True)
            run = [*clients[client], str(base / "scenario.json"), *before, *command]
            out = subprocess.run(run, cwd=base, env=env, capture_output=True, text=True, timeout=180)
            if out.returncode != 0:
                raise SystemExit(f"{server}, {client}: {out.stderr[-2000:]}")
            if client == "typescript":
                # The Inspector takes a `--` of a server for its own.
                (base / "server").write_text(f"#!/bin/sh\nexec {shlex.join([*before, *command])}\n")
                (base / "server").chmod(0o755)
                seen = json.loads(out.stdout)
                for options in scenario.get("inspector", []):
                    inspector = [f"{modules}/.bin/mcp-inspector", "--cli", str(base / "server")]
                    done = subprocess.run([*inspector, *options], cwd=base, env=env, capture_output=True, text=True, timeout=60)
                    said = done.stdout if done.returncode == 0 else json.dumps({"status": done.returncode})
                    seen["inspector " + " ".join(options[1:])] = json.loads(said)
                out.stdout = json.dumps(seen)
            seen = normal(json.loads(out.stdout))
            for what, value in seen.items():
                if before and what.startswith("call no-such-tool"):
                    text = value["result"]["content"][0]
                    text["text"] = re.sub(r"^entail guard refused this call: there is no tool.*", "refused", text["text"])
            return seen

        fresh(folder)
        (base / "entail.lock").unlink(missing_ok=True)
        policy = ["--policy", str(base / "policy.toml"), "--labels", str(base / "state" / "labels.db")]
        for client in clients:
            bare = view(client, [])
            tools = [tool["name"] for tool in bare["tools"]["tools"]]
            # A policy that admits every call of every tool.
            tables = [f'[tools."{tool}"]\neffect = "pure"\n' for tool in tools]
            (base / "policy.toml").write_text("".join(tables))
            again = differences("", bare, view(client, []))
            if again:
                raise SystemExit(f"{server}, {client}: two runs without a guard differ:\n    " + "\n    ".join(again))
            for name, options, approved in (
                ("--observe", [*policy, "--observe"], False),
                ("a policy that admits all", policy, True),
            ):
                lock = ["--lock", str(base / "entail.lock")]
                if approved:
                    approve = [entail, "guard", "--approve", *lock, "--", *command]
                    subprocess.run(approve, cwd=base, env=env, check=True, capture_output=True)
                guarded = view(client, [entail, "guard", *options, *lock, "--"])
                found = differences("", expected(bare, approved), guarded)
                seen = sum(isinstance(v, (dict, list)) for v in bare.values())
                print(f"{server}, {client}, {name}: {seen} views, {len(found)} differ", flush=True)
                for difference in found:
                    print(f"    {difference}")
                failed += bool(found)
                (base / "entail.lock").unlink(missing_ok=True)
    web.shutdown()
    shutil.rmtree(base)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
