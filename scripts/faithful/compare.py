"""Runs each program twice on a scripted model server, with its framework and with Entail, and compares what they ask.

Of a program `NAME.py` (a saved chain: `NAME.yaml`) the file `NAME.json` says: `input`; `replies` of the model in order (a text, a tool with
arguments, or a list of such calls);
`known`, a difference that the documentation lists; `fails`, that the run is to fail with words that hold this; `json`, that
results are compared as JSON; `unordered`, that requests are made at the same time and compared without their order. A reply with
`when` and `say` is for the request that holds the text.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = ROOT / "suite" / "faithful"


class Scripted(Server):
    """Gives the replies in order and remembers the requests."""

    def __init__(self, replies):
        self.replies = list(replies)
        self.requests = []
        super().__init__()

    def reply(self, body):
        """Returns the first reply that is for this request."""
        self.requests.append(body)
        asked = json.dumps(body["messages"])
        for i, reply in enumerate(self.replies):
            if not (isinstance(reply, dict) and "when" in reply):
                return self.replies.pop(i)
            if reply["when"] in asked:
                return self.replies.pop(i)["say"]
        return "nothing is left to say"


def text_of(content):
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def as_data(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def one_by_one(messages):
    """The calls of a message each with its result after it, as Entail says them."""
    messages = list(messages)
    while messages:
        m = messages.pop(0)
        calls = m.get("tool_calls") or []
        if len(calls) < 2:
            yield m
            continue
        for call in calls:
            yield {**m, "tool_calls": [call]}
            result = next((r for r in messages if r["role"] == "tool" and r.get("tool_call_id") == call["id"]), None)
            if result is not None:
                messages.remove(result)
                yield result


def shape(request, without_instructions):
    """What is compared of a request."""
    messages = []
    for m in one_by_one(request["messages"]):
        calls = [(c["function"]["name"], as_data(c["function"]["arguments"] or "{}")) for c in m.get("tool_calls") or []]
        content = "" if calls else text_of(m.get("content"))
        role = {"developer": "system"}.get(m["role"], m["role"])
        if role == "system" and without_instructions:
            continue
        messages.append((role, as_data(content) if role == "tool" else content, calls))
    tools = {t["function"]["name"]: sorted(t["function"].get("parameters", {}).get("properties", {})) for t in request.get("tools") or []}
    settings = {k: request[k] for k in ("model", "temperature", "max_tokens") if request.get(k) is not None}
    if request.get("max_completion_tokens") is not None:
        settings["max_tokens"] = request["max_completion_tokens"]
    typed = request.get("response_format") is not None
    return {"messages": messages, "tools": tools, "settings": settings, "typed": typed}


def environment(server):
    env = dict(os.environ)
    for name in list(env):
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            del env[name]
    env.update(
        OPENAI_API_KEY="none",
        OPENAI_BASE_URL=f"http://127.0.0.1:{server.server_port}/v1",
        OPENAI_AGENTS_DISABLE_TRACING="1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    return env


def ran(command, env, folder):
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def real(program, script):
    server = Scripted(script["replies"])
    framework = program.parent.name
    python = ROOT / "target" / "faithful" / framework / "bin" / "python"
    command = [str(python), str(ROOT / f"scripts/faithful/run_{framework}.py"), str(program)]
    if program.suffix == ".yaml":
        command.append(script["input"])
    with tempfile.TemporaryDirectory() as folder:
        env = environment(server)
        env.update(HOME=folder, CREWAI_STORAGE_DIR=folder, CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true")
        outcome = ran(command, env, folder)
    return outcome, server.requests


def ours(program, script, entail, requests, shim_too):
    server = Scripted(script["replies"])
    framework = program.parent.name
    offered = {name for r in requests for name in (t["function"]["name"] for t in r.get("tools") or [])}
    models = {r["model"] for r in requests}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shim = str(ROOT / "scripts/faithful/call_tool.py")
        policy = []
        if shim_too:
            # Tools as users run them: by the shim, with the framework.
            python = json.dumps(str(ROOT / "target" / "faithful" / framework / "bin" / "python"))
            settings = [f'[python]\ntools = true\ninterpreter = {python}\nenv = ["OPENAI_API_KEY"]']
        else:
            settings = ["[handlers]"]
            for name in sorted(offered):
                command = json.dumps([sys.executable, shim, str(program), name])
                settings.append(f"{name} = {{ exec = {command} }}")
        for model in sorted(models):
            url = f"http://127.0.0.1:{server.server_port}/v1"
            called = f"openai/{model}" if program.parent.name == "crewai" else model
            settings.append(f'[models."{called}"]\nmodel = "{model}"\nbase_url = "{url}"\nkey_env = "OPENAI_API_KEY"')
        # What tools return is trusted here: the frameworks know no labels.
        for name in sorted(offered):
            if not name.startswith("transfer_to_"):
                policy.append(f'[tools.{name}]\neffect = "read"\nresult = "trusted"')
        (folder / "entail.toml").write_text("\n".join(settings) + "\n")
        (folder / "policy.toml").write_text("\n".join(policy) + "\n")
        command = [entail, "run", "--quiet", "--config", str(folder / "entail.toml"), "--policy", str(folder / "policy.toml")]
        outcome = ran([*command, str(program), script["input"]], environment(server), folder)
    return outcome, server.requests


def differences(script, theirs, mine):
    (their_code, their_out, their_err), their_requests = theirs
    (my_code, my_out, my_err), my_requests = mine
    if their_code != 0:
        return [f"the framework failed: {their_err[-800:]}"]
    out = []
    if "fails" in script:
        if my_code == 0 or script["fails"] not in my_err:
            out.append(f"was to fail with `{script['fails']}`: {my_code} {my_out} {my_err[-300:]}")
    elif my_code != 0:
        out.append(f"failed: {my_err[-600:]}")
    # Entail prints values as JSON.
    elif as_data(my_out) != (as_data(their_out) if script.get("json") else their_out):
        out.append(f"the result: {their_out!r} there, {my_out!r} here")
    if len(their_requests) != len(my_requests):
        out.append(f"requests: {len(their_requests)} there, {len(my_requests)} here")
    known = "known" in script
    if script.get("unordered"):
        their_requests.sort(key=lambda r: json.dumps(r["messages"]))
        my_requests.sort(key=lambda r: json.dumps(r["messages"]))
    for i, (a, b) in enumerate(zip(their_requests, my_requests), 1):
        a, b = shape(a, known), shape(b, known)
        for key in a:
            if a[key] != b[key]:
                out.append(f"request {i}, {key}:\n    there {a[key]}\n    here  {b[key]}")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entail", default=str(ROOT / "target/debug/entail"))
    parser.add_argument("--shim", action="store_true", help="tools are called by Entail's shim, with their framework")
    parser.add_argument("which", nargs="?", default="")
    args = parser.parse_args()
    same, all_ = 0, 0
    for program in sorted([*SUITE.glob("*/*.py"), *SUITE.glob("langchain/*.yaml")]):
        name = f"{program.parent.name}/{program.stem}"
        if not name.startswith(args.which):
            continue
        script = json.loads(program.with_suffix(".json").read_text())
        theirs = real(program, script)
        mine = ours(program, script, args.entail, theirs[1], args.shim)
        found = differences(script, theirs, mine)
        all_ += 1
        same += not found
        note = f" (but for {script['known']})" if "known" in script else ""
        print(f"{name}: {len(theirs[1])} requests, {'the same' + note if not found else 'different'}", flush=True)
        for line in found:
            print(f"  {line}")
    print(f"{same} of {all_} the same")
    return 0 if same == all_ else 1


if __name__ == "__main__":
    sys.exit(main())
