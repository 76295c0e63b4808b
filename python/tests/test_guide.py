"""Guides about the package, followed in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page, expected_commands", [("python.md", 2), ("guard-frameworks.md", 1)])
def test_the_guide_can_be_followed(tmp_path: Path, page: str, expected_commands: int) -> None:
    environment = {**os.environ, "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"}
    parts = (ROOT / "docs" / page).read_text().split("\n```")
    commands = 0
    # Prose and blocks alternate. A block is saved under the name at the end of the prose before it.
    for prose, block in zip(parts[::2], parts[1::2]):
        info, _, text = block.partition("\n")
        name = re.search("`([^`]+)`:$", prose.rstrip())
        if name:
            (tmp_path / name[1]).write_text(text + "\n")
        if info == "console python":
            command, _, expected = text.removeprefix("$ ").partition("\n")
            done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.stdout.strip() == expected, done.stderr
            commands += 1
    assert commands == expected_commands


def test_the_page_names_the_versions_that_are_tested() -> None:
    script = (ROOT / "scripts" / "adapters").read_text()
    tested = re.findall(r"^    \w+\) echo \"([^\"]+)\"", script, re.MULTILINE)
    assert len(tested) == 7
    page = (ROOT / "docs" / "guard-frameworks.md").read_text()
    named = re.findall(r"^\| [^|`]+ \| (`[a-z-]+==[^|]+`) \|$", page, re.MULTILINE)
    assert [row.replace("`", "") for row in named] == tested
