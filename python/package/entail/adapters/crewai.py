"""The guard in CrewAI: as hooks of all calls of tools."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from crewai.hooks import (
    ToolCallHookContext,
    register_after_tool_call_hook,
    register_before_tool_call_hook,
    unregister_after_tool_call_hook,
    unregister_before_tool_call_hook,
)
from crewai.utilities.string_utils import sanitize_tool_name

from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, expect

Session = Guard | GuardSession | Callable[[ToolCallHookContext], GuardSession]


def install(session: Session) -> InstalledGuard:
    """Checks each call of a tool in this process, of crews and of agents without one.

        entail.adapters.crewai.install(entail.Guard("policy.toml"))

    With a `Guard` each crew, and each agent without one, is a conversation; a copy of a crew, as `kickoff_for_each` makes, is another one. A
    refused call is one that a hook has blocked, with the reason as its result. Names of tools are those that models see, such as
    `delegate_work_to_coworker`.
    """
    return InstalledGuard(session)


class InstalledGuard:
    """A guard that is installed, until `uninstall`."""

    def __init__(self, session: Session) -> None:
        if not callable(session):
            expect(session, (Guard, GuardSession), "install")
        self._session = session
        self._lock = threading.Lock()
        self._conversations: WeakKeyDictionary[_Key, GuardSession] = WeakKeyDictionary()
        #: What was decided about a call, by the identity of its arguments, which both hooks get.
        self._calls: dict[int, tuple[dict[str, Any], GuardCall | str]] = {}
        register_before_tool_call_hook(self._before)
        register_after_tool_call_hook(self._after)

    def uninstall(self) -> None:
        """Checks no call any more."""
        unregister_before_tool_call_hook(self._before)
        unregister_after_tool_call_hook(self._after)

    def session(self, context: ToolCallHookContext) -> GuardSession:
        """The conversation of a call."""
        if isinstance(self._session, GuardSession):
            return self._session
        if not isinstance(self._session, Guard):
            return self._session(context)
        owner = context.crew if context.crew is not None else context.agent
        with self._lock:
            key = _key_of(owner)
            if key not in self._conversations:
                self._conversations[key] = self._session.session()
            return self._conversations[key]

    def _before(self, context: ToolCallHookContext) -> bool | None:
        # CrewAI goes on after an exception of a hook: none may leave it.
        decided: GuardCall | str
        try:
            session = self.session(context)
            session.declare(_declarations(context))
            decided = session.check(context.tool_name, context.tool_input, read=lambda name: _read(context, name))
        except GuardRefused as refused:
            decided = str(refused)
        except Exception as e:
            decided = f"entail guard refused this call: {e}"
        with self._lock:
            self._calls[id(context.tool_input)] = (context.tool_input, decided)
        return False if isinstance(decided, str) else None

    def _after(self, context: ToolCallHookContext) -> str | None:
        with self._lock:
            _, decided = self._calls.pop(id(context.tool_input), (None, None))
        if decided is None or isinstance(decided, str):
            return decided
        try:
            # A text may be that of a failure, which CrewAI tells the model in the same way.
            if isinstance(context.raw_tool_result, str):
                decided.failed(context.raw_tool_result)
            else:
                decided.result(context.raw_tool_result)
        except Exception as withheld:
            return str(withheld)
        return None


class _Key:
    """What a crew or an agent is known by, for as long as it lives: they can't be keys themselves."""


_keys: dict[int, tuple[Any, _Key]] = {}


def _key_of(owner: Any) -> _Key:
    import weakref

    known = _keys.get(id(owner))
    if known is not None and known[0]() is owner:
        return known[1]
    key = _Key()
    _keys[id(owner)] = (weakref.ref(owner, lambda _: _keys.pop(id(owner), None)), key)
    return key


def _declarations(context: ToolCallHookContext) -> list[dict[str, Any]]:
    tools = [context.tool, *(getattr(context.agent, "tools", None) or ()), *(getattr(context.task, "tools", None) or ())]
    made: dict[str, dict[str, Any]] = {}
    for tool in tools:
        schema = getattr(tool, "args_schema", None)
        if schema is not None:
            name = sanitize_tool_name(tool.name)
            made.setdefault(name, {"name": name, "parameters": schema.model_json_schema()})
    return list(made.values())


def _read(context: ToolCallHookContext, name: str) -> Any:
    for tool in [*(getattr(context.agent, "tools", None) or ()), *(getattr(context.task, "tools", None) or ())]:
        if sanitize_tool_name(tool.name) == name:
            return tool.run()
    raise LookupError(f"the agent has no tool `{name}`")


__all__ = ["InstalledGuard", "install"]
