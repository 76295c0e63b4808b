"""The command line in the wheel."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import entail
from conftest import LIBRARIAN

MODULE = [sys.executable, "-m", "entail"]
SCRIPT = [str(Path(sysconfig.get_path("scripts")) / "entail")]


@pytest.mark.parametrize("entail_", [MODULE, SCRIPT], ids=["module", "script"])
def test_version(entail_: list[str]) -> None:
    done = subprocess.run([*entail_, "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"entail {entail.__version__} (")


def test_lint_and_its_exit_status(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text("writer:\n  role: Writer\n  goal: Write\n  backstory: x\n  max_iter: 0\n")
    done = subprocess.run([*MODULE, "lint", "--format", "json", "."], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["level"] in ("warn", "error")
    wrong = subprocess.run([*MODULE, "lint", "nowhere"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "no such file" in wrong.stderr


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text(LIBRARIAN.replace("tool count(text: String) -> Number pure {}", """
        tool count(text: String) -> Number pure { builtin "text.length" }"""))
    (tmp_path / "script.json").write_text('["Bees"]')
    done = subprocess.run([*SCRIPT, "run", "main.agent", "bees", "--script", "script.json"], capture_output=True, text=True)
    assert json.loads(done.stdout) == {"title": "Bees", "words": 4}, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_ends_a_run_with_130(tmp_path: Path) -> None:
    (tmp_path / "slow.agent").write_text(
        """
        tool wait() -> String pure { exec "sh" "-c" "echo begun >&2; echo > begun; sleep 600" }
        pipeline main() -> String { let out = run wait with {}; return out; }
        """
    )
    run = subprocess.Popen([*MODULE, "run", "slow.agent", "{}"], stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "begun").exists():
        assert run.poll() is None, run.stderr.read() if run.stderr else ""
    run.send_signal(signal.SIGINT)
    assert run.wait() == 130
    if run.stderr:
        run.stderr.close()


def test_the_server_for_assistants_calls_this_package(tmp_path: Path) -> None:
    (tmp_path / "main.agent").write_text(LIBRARIAN)
    server = subprocess.Popen([*MODULE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None

    def ask(number: int, method: str, **params: object) -> dict[str, object]:
        assert server.stdin is not None and server.stdout is not None
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer: dict[str, object] = json.loads(server.stdout.readline())
        return answer

    ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "0"})
    server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    answer = ask(2, "tools/call", name="cost", arguments={"path": "main.agent"})
    assert "modelCalls" in json.dumps(answer), answer
    server.stdin.close()
    server.stdout.close()
    assert server.wait() == 0


def test_the_shim_answers_by_itself(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("def add(a: int, b: int = 1) -> int:\n    print('adding')\n    return a + b\n")
    request = json.dumps({"call": "add", "args": {"a": 2, "b": None}})
    shim = [sys.executable, "-m", "entail.shim", "tools.py"]
    done = subprocess.run(shim, input=request + "\n", capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"ready": True}, {"value": 3}]
    assert done.stderr == "adding\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_ends_a_program_of_python_with_the_processes_of_its_tools(tmp_path: Path) -> None:
    (tmp_path / "slow.agent").write_text(
        """
        tool wait() -> String pure { exec "sh" "-c" "echo $$ > begun.part; mv begun.part begun; exec sleep 600" }
        pipeline main() -> String { let out = run wait with {}; return out; }
        """
    )
    (tmp_path / "main.py").write_text(
        """
import asyncio, entail, signal
# What a shell runs in the background, these tests perhaps, ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    asyncio.run(entail.load("slow.agent").run({}))
except KeyboardInterrupt:
    print("interrupted")
    raise SystemExit(130)
"""
    )
    run = subprocess.Popen([sys.executable, "main.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "begun").exists():
        assert run.poll() is None, run.communicate()
    run.send_signal(signal.SIGINT)
    said, trouble = run.communicate()
    assert (run.returncode, said, trouble) == (130, "interrupted\n", ""), trouble
    # The process has ended when the program goes on, not some time later.
    assert not Path(f"/proc/{(tmp_path / 'begun').read_text().strip()}").exists()
