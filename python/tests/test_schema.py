"""Annotations as JSON Schemas, and data as values of types."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
import sys
from typing import Any, Literal, Optional, TypedDict

import pytest

from entail._schema import as_json, of_function, of_type, read_as


class Urgency(enum.Enum):
    HIGH = "high"
    LOW = "low"


@dataclass
class Ticket:
    text: str
    urgency: Urgency = Urgency.LOW
    tags: list[str] = field(default_factory=list)


class Order(TypedDict):
    number: int


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (dict[str, int], {"type": "object"}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Urgency, {"enum": ["high", "low"]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Order, {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}),
        (tuple[int, str], {}),
        (Any, {}),
        (object, {}),
    ],
)
def test_annotations(annotation: Any, schema: dict[str, Any]) -> None:
    assert of_type(annotation) == schema


def test_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where a program uses Pydantic, that makes the schemas.
    monkeypatch.delitem(sys.modules, "pydantic", raising=False)

    def search(query: str, limit: int = 5, *, exact: bool) -> list[Ticket]:
        return []

    takes, gives = of_function(search)
    assert takes == {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 5}, "exact": {"type": "boolean"}},
        "required": ["query", "exact"],
    }
    assert gives is not None
    assert gives["items"]["required"] == ["text"]

    def anything(**args: Any) -> None: ...

    assert of_function(anything) == (None, {"type": "null"})


def test_data_and_values() -> None:
    ticket = Ticket("hi", Urgency.HIGH, ["a"])
    data = {"text": "hi", "urgency": "high", "tags": ["a"]}
    assert as_json(ticket) == data
    assert read_as(Ticket, {**data, "more": 1}) == ticket
    assert read_as(list[Ticket], [data]) == [ticket]
    with pytest.raises(TypeError, match="1 is no str"):
        read_as(Ticket, {"text": 1})
