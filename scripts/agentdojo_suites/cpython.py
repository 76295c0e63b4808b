"""Runs a plan with CPython and no defense, to tell whether the plan is right."""

from __future__ import annotations

import ast
import json
from typing import Any

from pydantic import TypeAdapter

from agentdojo_suites.harness import Calls, Model


class Record(dict):  # type: ignore[type-arg]
    """Record whose fields are also attributes, as in a plan."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def records(value: Any) -> Any:
    """Returns JSON data whose objects are records."""
    if isinstance(value, dict):
        return Record((k, records(v)) for k, v in value.items())
    return [records(v) for v in value] if isinstance(value, list) else value


def run(plan: str, calls: Calls, model: Model) -> str:
    """Runs a plan and returns its answer as text. Whatever it has confirmed is approved and recorded."""
    printed: list[str] = []

    def confirm(value: Any, why: str) -> Any:
        calls.confirmed.append(value)
        return value

    def ask(prompt: str, kind: Any) -> Any:
        adapter = TypeAdapter(kind)
        value = model.reply(prompt, adapter.json_schema())
        if value is not None:
            adapter.validate_json(json.dumps(value))
        return records(value)

    def tool(name: str) -> Any:
        names = calls.parameters(name)
        return lambda *args, **kwargs: records(
            calls.call(name, {**dict(zip(names, args, strict=False)), **kwargs})
        )

    scope: dict[str, Any] = {name: tool(name) for name in calls.runtime.functions}
    scope |= {"ask": ask, "confirm": confirm}
    scope["print"] = lambda *args: printed.append(" ".join(str(a) for a in args))
    exec(compile(main(plan), "plan.py", "exec", dont_inherit=True), scope)
    answer = scope["main"]()
    return "\n".join(printed + ([] if answer is None else [str(answer)]))


def main(plan: str) -> ast.Module:
    """Returns a module whose function `main` runs the plan and returns its last expression."""
    body = ast.parse(plan).body
    last = body[-1]
    if isinstance(last, ast.Expr):
        body[-1] = ast.copy_location(ast.Return(last.value), last)
    head = [s for s in body if isinstance(s, (ast.Import, ast.ImportFrom, ast.ClassDef))]
    rest = [s for s in body if s not in head]
    module = ast.parse("def main():\n    pass")
    module.body[0].body = rest  # type: ignore[attr-defined]
    module.body[:0] = head
    return ast.fix_missing_locations(module)
