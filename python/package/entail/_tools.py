"""Tools that are functions of Python."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from entail._schema import Schema, arguments, as_json, of_function
from entail._bridge import Native, native_of


@dataclass(frozen=True)
class Tool:
    """A function that carries a tool of a program out. Its annotations are compared with the tool's declaration before a run."""

    #: The tool's name in the program.
    name: str
    #: Sync or async. It is called with the arguments by name; what it raises is the failure of the tool. A sync one works in a thread.
    function: Callable[..., Any]
    #: The JSON Schema of its arguments, as an object; without one, anything.
    takes: Schema | None = None
    #: The JSON Schema of its result; without one, anything.
    gives: Schema | None = None
    #: What it does, for models; without one, the docstring of the function.
    description: str | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def native(self, loop: asyncio.AbstractEventLoop) -> Native:
        """The function on arguments from a program, for the native half."""
        return native_of(self.function, lambda args: ((), arguments(self.function, args)), as_json, loop)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """A function as a tool, by its own name or another.

    >>> @tool(name="word_count")
    ... def count(text: str) -> int:
    ...     return len(text.split())
    >>> count.name, count.gives, count("a b")
    ('word_count', {'type': 'integer'}, 2)
    """

    def made(function: Callable[..., Any]) -> Tool:
        takes, gives = of_function(function)
        return Tool(name or function.__name__, function, takes, gives)

    return made if function is None else made(function)


Tools = Mapping[str, Callable[..., Any]] | Iterable[Tool | Callable[..., Any]]


def tools_of(given: Tools | None) -> list[Tool]:
    """The tools of a list of functions, or of a mapping from names to functions."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        named = [(n, f.function if isinstance(f, Tool) else f) for n, f in given.items()]
        return [Tool(n, f, *of_function(f)) for n, f in named]
    return [t if isinstance(t, Tool) else tool(t) for t in given]
