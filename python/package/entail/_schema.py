"""Annotations as JSON Schemas, and data as JSON."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

#: A schema; an empty one says nothing.
Schema = dict[str, Any]

_DEEPEST = 16


def of_type(annotation: Any, depth: int = 0) -> Schema:
    """The schema of the JSON of an annotation. What is not understood says nothing."""
    if depth > _DEEPEST or annotation in (Any, inspect.Parameter.empty):
        return {}
    if annotation is None or annotation is type(None):
        return {"type": "null"}
    simple = {str: "string", int: "integer", float: "number", bool: "boolean"}
    if isinstance(annotation, type) and annotation in simple:
        return {"type": simple[annotation]}
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return of_type(args[0], depth + 1)
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [of_type(a, depth + 1) for a in args]}
    if origin in (list, set, frozenset) or (isinstance(origin, type) and issubclass(origin, typing.Sequence)):
        if origin is not tuple:
            return {"type": "array", "items": of_type(args[0], depth + 1) if args else {}}
    if annotation is list:
        return {"type": "array"}
    if annotation is dict or origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return {"type": "object"}
    if not isinstance(annotation, type):
        return {}
    if issubclass(annotation, enum.Enum):
        return {"enum": [m.value for m in annotation]}
    schema = getattr(annotation, "model_json_schema", None)
    if callable(schema):
        # Pydantic.
        return typing.cast(Schema, schema())
    if dataclasses.is_dataclass(annotation):
        hints = _hints(annotation)
        fields = {f.name: of_type(hints.get(f.name, Any), depth + 1) for f in dataclasses.fields(annotation)}
        missing = dataclasses.MISSING
        needed = [f.name for f in dataclasses.fields(annotation) if f.default is missing and f.default_factory is missing]
        return {"type": "object", "properties": fields, "required": needed}
    if typing.is_typeddict(annotation):
        fields = {n: of_type(t, depth + 1) for n, t in _hints(annotation).items()}
        required = sorted(getattr(annotation, "__required_keys__", frozenset()))
        return {"type": "object", "properties": fields, "required": required}
    return {}


def of_function(function: Callable[..., Any]) -> tuple[Schema | None, Schema | None]:
    """The schemas of a function's arguments, as an object, and of its result; `None` where nothing is known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None, None
    hints = _hints(function)
    fields: dict[str, Schema] = {}
    needed: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            # It takes anything.
            return None, of_type(hints.get("return", Any))
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            continue
        fields[name] = of_type(hints.get(name, Any))
        if parameter.default is inspect.Parameter.empty:
            needed.append(name)
    takes = {"type": "object", "properties": fields, "required": needed}
    return takes, of_type(hints.get("return", Any)) or None


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except Exception:
        # Names that are only there for type checkers.
        return {}


def as_json(value: Any) -> Any:
    """A value as data: of Pydantic's models, dataclasses and enumerations what they hold."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(v) for v in value]
    return value


_T = typing.TypeVar("_T")


def read_as(type_: type[_T], data: Any) -> _T:
    """Data as a value of a type: a Pydantic model, a dataclass, or what the data is already."""
    validate = getattr(type_, "model_validate", None)
    if callable(validate):
        return typing.cast(_T, validate(data))
    return typing.cast(_T, _read(type_, data))


def _read(annotation: Any, data: Any) -> Any:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        some = [a for a in args if a is not type(None)]
        return None if data is None else _read(some[0], data) if len(some) == 1 else data
    if origin is list and isinstance(data, list):
        return [_read(args[0], d) for d in data]
    if not isinstance(annotation, type):
        return data
    if callable(getattr(annotation, "model_validate", None)):
        return read_as(annotation, data)
    if issubclass(annotation, enum.Enum):
        return annotation(data)
    if dataclasses.is_dataclass(annotation) and isinstance(data, dict):
        hints = _hints(annotation)
        known = {f.name for f in dataclasses.fields(annotation)}
        return annotation(**{k: _read(hints.get(k, Any), v) for k, v in data.items() if k in known})
    if isinstance(data, annotation) or (annotation is float and isinstance(data, int)):
        return float(data) if isinstance(data, int) and annotation is float else data
    raise TypeError(f"{data!r} is no {annotation.__name__}")
