"""What the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARIAN = """
tool count(text: String) -> Number pure {}
agent librarian { tools: [], prompt: "You know books." }
task title_of(topic: String) -> String by agent { prompt "A title about {topic}" }

pipeline main(topic: String) -> Obj{title: String, words: Number} {
    let title = run title_of with { topic: topic } by librarian;
    let words = run count with { text: title };
    return { title: title, words: words };
}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without settings, and an environment without keys."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
