"""Models that are functions of Python."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Union


class ToolCall(TypedDict):
    """A call of a tool that was offered."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What a model says, with what that used."""

    #: A text, a call of a tool, or several.
    reply: str | ToolCall | list[ToolCall]
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Call:
    """A question to a model."""

    #: The conversation, oldest first: `role` (`system`, `user`, `assistant`, `tool`), `content`, and `call` where a tool is called.
    messages: list[dict[str, Any]]
    #: The tools offered: `name`, `description`, `parameters` (a JSON Schema).
    tools: list[dict[str, Any]]
    #: The JSON Schema of the answer, which is to be its JSON text; `None` if it is any text.
    schema: dict[str, Any] | None
    #: What it is for: the task's name.
    purpose: str | None
    #: The model that the program names.
    model: str | None
    #: The most tokens of the reply.
    max_output: int | None
    #: How many replies to this question were not what was asked for.
    attempt: int

    @property
    def text(self) -> str:
        """The text of the last message."""
        return str(self.messages[-1]["content"]) if self.messages else ""


Said = Union[str, ToolCall, list[ToolCall], Reply]
#: A model: a function, sync or async, from a question to a reply.
Model = Callable[[Call], Union[Said, Awaitable[Said]]]


def as_data(said: Said) -> Any:
    """A reply for the native half."""
    if isinstance(said, Reply):
        return {"reply": said.reply, "tokens": {"input": said.input_tokens, "output": said.output_tokens}}
    return said
