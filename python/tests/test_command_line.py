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
