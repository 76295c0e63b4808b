"""Annotations as JSON Schemas, and data as JSON."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import inspect
import json
import sys
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from typing import Any

#: A schema; an empty one says nothing.
Schema = dict[str, Any]

_DEEPEST = 16


def schema_of(annotation: Any, mode: typing.Literal["validation", "serialization"]) -> Schema:
    """The schema of what an annotation is read from, or written as. What is not understood says nothing."""
    adapter = _adapter(annotation)
    if adapter is not None:
        try:
            return typing.cast(Schema, adapter.json_schema(mode=mode))
        except Exception:
            # It has types that have no schema.
            pass
    return of_type(annotation)


def _adapter(annotation: Any) -> Any:
    """What Pydantic makes of an annotation; `None` where the program does not use Pydantic, or that knows no such type."""
    pydantic = sys.modules.get("pydantic")
    make = getattr(pydantic, "TypeAdapter", None)
    if make is None or annotation in (Any, inspect.Parameter.empty):
        return None
    try:
        return make(annotation)
    except Exception:
        return None


def of_type(annotation: Any, depth: int = 0) -> Schema:
    """The schema of the JSON of an annotation without Pydantic."""
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
    if issubclass(annotation, (datetime.date, datetime.time)):
        return {"type": "string"}
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
    shared: dict[str, Schema] = {}
    result = Any if isinstance(signature.return_annotation, str) else signature.return_annotation
    gives = schema_of(hints.get("return", result), "serialization") or None
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            # It takes anything.
            return None, gives
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            continue
        # A signature that was set by hand has annotations of its own.
        annotation = hints.get(name, Any if isinstance(parameter.annotation, str) else parameter.annotation)
        fields[name] = _hoisted(schema_of(annotation, "validation"), name, shared)
        if parameter.default is inspect.Parameter.empty:
            needed.append(name)
        elif _is_data(parameter.default):
            fields[name] = {**fields[name], "default": as_json(parameter.default)}
    takes: Schema = {"type": "object", "properties": fields, "required": needed}
    if shared:
        takes["$defs"] = shared
    return takes, gives


def _hoisted(schema: Schema, name: str, shared: dict[str, Schema]) -> Schema:
    """The schema of a parameter inside of that of all; its definitions get names of their own there."""

    def moved(part: Any) -> Any:
        if isinstance(part, dict):
            target = part.get("$ref")
            inner = {k: moved(v) for k, v in part.items()}
            if isinstance(target, str) and target.startswith("#/$defs/"):
                inner["$ref"] = f"#/$defs/{name}.{target.removeprefix('#/$defs/')}"
            return inner
        return [moved(p) for p in part] if isinstance(part, list) else part

    own = dict(schema)
    for key, definition in own.pop("$defs", {}).items():
        shared[f"{name}.{key}"] = moved(definition)
    return typing.cast(Schema, moved(own))


def _is_data(value: Any) -> bool:
    try:
        json.dumps(as_json(value), allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def arguments(function: Callable[..., Any], args: dict[str, Any]) -> dict[str, Any]:
    """Arguments that are data, as what the annotations of a function say: models, dataclasses, enumerations, dates."""
    readers = _readers(function)
    return {n: readers[n](v) if n in readers else v for n, v in args.items()} if readers else args


def _readers(function: Callable[..., Any]) -> dict[str, Callable[[Any], Any]]:
    try:
        known: dict[str, Callable[[Any], Any]] | None = _READERS.get(function)
    except TypeError:
        # It has no identity to be known by.
        return _made_readers(function)
    if known is None:
        known = _made_readers(function)
        _READERS[function] = known
    return known


_READERS: weakref.WeakKeyDictionary[Any, dict[str, Callable[[Any], Any]]] = weakref.WeakKeyDictionary()


def _made_readers(function: Callable[..., Any]) -> dict[str, Callable[[Any], Any]]:
    readers: dict[str, Callable[[Any], Any]] = {}
    for name, annotation in _hints(function).items():
        if name == "return" or not _is_built(annotation):
            continue
        adapter = _adapter(annotation)
        readers[name] = functools.partial(_read, annotation) if adapter is None else adapter.validate_python
    return readers


def _is_built(annotation: Any) -> bool:
    """True if its values are not what JSON has."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return (
            issubclass(annotation, (enum.Enum, datetime.date, datetime.time, datetime.timedelta))
            or dataclasses.is_dataclass(annotation)
            or callable(getattr(annotation, "model_validate", None))
        )
    if typing.get_origin(annotation) is typing.Literal:
        return False
    return any(_is_built(a) for a in typing.get_args(annotation))


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
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
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
    if issubclass(annotation, (datetime.date, datetime.time)) and isinstance(data, str):
        return annotation.fromisoformat(data)
    if dataclasses.is_dataclass(annotation) and isinstance(data, dict):
        hints = _hints(annotation)
        known = {f.name for f in dataclasses.fields(annotation)}
        return annotation(**{k: _read(hints.get(k, Any), v) for k, v in data.items() if k in known})
    if isinstance(data, annotation) or (annotation is float and isinstance(data, int)):
        return float(data) if isinstance(data, int) and annotation is float else data
    raise TypeError(f"{data!r} is no {annotation.__name__}")
