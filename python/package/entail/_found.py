"""What is wrong, as values and exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from entail import _entail

if TYPE_CHECKING:
    from entail._plan import PlanResult


@dataclass(frozen=True)
class Place:
    """A place in a file; lines and columns count from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


def _place(found: dict[str, Any]) -> Place | None:
    if "path" not in found or "line" not in found:
        return None
    return Place(found["path"], found["line"], found["column"])


@dataclass(frozen=True)
class Finding:
    """Something that is to be said about a program or a configuration."""

    #: What `entail explain` knows it by, such as `L004a`.
    code: str
    #: `error`, `warn`, `unknown` (it could not be decided) or `info`.
    level: str
    #: The problem.
    message: str
    #: Where.
    place: Place | None = None
    #: The remedy.
    help: str | None = None
    #: Everything that is known of it, as `entail lint --format json` writes it.
    details: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.level}[{self.code}]: {self.message}"


def finding(found: dict[str, Any]) -> Finding:
    return Finding(found["code"], found["level"], found["message"], _place(found), found.get("help"), found)


class Error(Exception):
    """What went wrong. Its text is what the command line would show."""

    #: `program`, `input`, `type`, `settings`, `usage`, or the code of the error that ended a run, such as `tool` or `budget`.
    code: str
    #: The problem; of several the first.
    message: str
    #: Where it is, in a program.
    place: Place | None
    #: The remedy.
    help: str | None

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told.get("text", told["message"]))
        self._told = told
        self.code = told["code"]
        self.message = told["message"]
        self.place = _place(told)
        self.help = told.get("help")

    def __reduce__(self) -> tuple[Any, ...]:
        # The text alone does not make another.
        return type(self), (self._told,)


class ProgramError(Error):
    """A program is wrong, or can't be read."""

    #: All that is wrong with it.
    findings: list[Finding]

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told)
        self.findings = [finding(f) for f in told.get("findings", [])]


class RunError(Error):
    """A run failed: a model, a tool, a budget, a limit of time, a label that may not flow there."""

    #: What it had used, and what was done before it ended: the object that `entail run --format json` writes.
    details: dict[str, Any]
    #: Of a plan: the calls that were made, the questions that were asked.
    result: PlanResult | None

    def __init__(self, told: dict[str, Any], details: dict[str, Any]) -> None:
        super().__init__(told)
        self.details = details
        self.result = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._told, self.details), {"result": self.result}


def raised(told: dict[str, Any]) -> Error:
    return ProgramError(told) if told["code"] == "program" else Error(told)


@contextmanager
def native() -> Iterator[None]:
    """Failures of the native half as exceptions of this package."""
    try:
        yield
    except _entail.Failure as failure:
        told = json.loads(failure.args[0])
    else:
        return
    raise raised(told) from None
