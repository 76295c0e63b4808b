"""The native half: JSON texts in and out."""

from collections.abc import Callable
from typing import Any

VERSION: str
SHIM: str

class Failure(Exception):
    """What went wrong, as a JSON text."""

class Answer:
    def give(self, json: str) -> None: ...
    def fail(self, why: str) -> None: ...

_Function = Callable[[str, Answer], Callable[[], object]]

class Run:
    def cancel(self) -> None: ...

class World:
    def __new__(
        cls,
        config: str | None,
        options: str,
        model: tuple[str, _Function] | None,
        tools: list[tuple[str, str | None, str | None, _Function]],
        approver: _Function | None,
    ) -> World: ...

class Program:
    @staticmethod
    def load(path: str, config: str | None) -> Program: ...
    @staticmethod
    def from_source(text: str) -> Program: ...
    def pipelines(self) -> str: ...
    def check(self) -> str: ...
    def bound(self, pipeline: str | None) -> str: ...
    def check_world(self, pipeline: str | None, world: World) -> None: ...
    def start(
        self,
        pipeline: str | None,
        input: str,
        world: World,
        told: Callable[[str], Any] | None,
        ended: Callable[[str], Any],
    ) -> Run: ...

def command_line(program: list[str], args: list[str]) -> int: ...
def shut_down() -> None: ...
def carried_by(file: str) -> None: ...
def command(args: list[str]) -> tuple[int, str]: ...
