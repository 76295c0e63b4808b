"""Tables as TOML, for policies that are mappings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

#: The path of a policy file, its text, or its tables as a mapping.
Policy: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


def policy_arguments(policy: Policy) -> tuple[str | None, str | None]:
    """The path of a policy, or its text."""
    if isinstance(policy, Mapping):
        return None, as_toml(policy)
    text = os.fspath(policy)
    # No path of a policy has lines.
    is_text = isinstance(policy, str) and (not text or "\n" in text or text.lstrip().startswith("["))
    return (None, text) if is_text else (text, None)


def as_toml(table: Mapping[str, Any]) -> str:
    """A mapping as a TOML document. `None` is left out.

    >>> print(as_toml({"tools": {"pay": {"effect": "write", "bounds": {"to": "trusted"}}}}), end="")
    [tools.pay]
    effect = "write"
    bounds = {to = "trusted"}
    """
    lines: list[str] = []
    _section("", table, lines)
    return "\n".join(lines) + "\n"


def _section(name: str, table: Mapping[str, Any], lines: list[str]) -> None:
    """A table with a header, its own keys first. Those of its tables that have only tables, or stand in the second level, are sections."""
    plain: dict[Any, Any] = {}
    tables: dict[Any, Any] = {}
    for key, value in table.items():
        if value is None:
            continue
        is_section = isinstance(value, Mapping) and name.count(".") == 0 and (not name or value)
        (tables if is_section else plain)[key] = value
    if name and (plain or not tables):
        lines.append(f"[{name}]")
    lines += [f"{_key(k)} = {_value(v)}" for k, v in plain.items()]
    for key, value in tables.items():
        _section(f"{name}.{_key(key)}" if name else _key(key), value, lines)


def _key(key: Any) -> str:
    text = str(key)
    is_bare = bool(text) and all(c.isascii() and (c.isalnum() or c in "-_") for c in text)
    return text if is_bare else _text(text)


def _text(text: str) -> str:
    # Strings of JSON are strings of TOML, but for one control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return _text(str(value))
