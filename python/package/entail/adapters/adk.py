"""The guard in Google's ADK: as a plugin of a runner."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.agents.callback_context import CallbackContext
from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from entail._found import Error
from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, expect

#: The key of the session's state that a conversation is kept under.
KEY = "entail_guard"

#: The most sessions in memory. Another one begins with its state.
MAX_SESSIONS = 4096

#: Tools of the framework itself: they hand the conversation on, end a loop, ask the user or give an answer. Their results say nothing.
OWN = frozenset(
    {
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
        "exit_loop",
        "set_model_response",
        "transfer_to_agent",
    }
)


class GuardPlugin(BasePlugin):
    """Checks each call of a tool at the label of what the models of the session have seen.

        app = App(name="desk", root_agent=agent, plugins=[GuardPlugin(entail.Guard("policy.toml"))])

    With a `Guard` each session of the ADK is a conversation, which is kept in its state. A refused call has `{"error": reason}` as its result.
    """

    def __init__(self, guard: Guard | GuardSession, name: str = "entail_guard") -> None:
        super().__init__(name)
        expect(guard, (Guard, GuardSession), "GuardPlugin")
        self._guard = guard
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[str, str, str], GuardSession] = OrderedDict()
        self._calls: WeakKeyDictionary[ToolContext, GuardCall] = WeakKeyDictionary()

    def session(self, context: CallbackContext | ToolContext) -> GuardSession:
        """The conversation of a session."""
        if isinstance(self._guard, GuardSession):
            return self._guard
        own = context.session
        key = (own.app_name, own.user_id, own.id)
        with self._lock:
            found = self._sessions.get(key)
            if found is None:
                found = self._sessions[key] = self._guard.session(own.state.get(KEY))
            self._sessions.move_to_end(key)
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return found

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
        session = self.session(callback_context)
        tools: dict[str, BaseTool] = llm_request.tools_dict
        session.declare(made for tool in tools.values() if (made := _declaration(tool)) is not None)
        calls: dict[str, tuple[str, dict[str, Any]]] = {}
        for content in llm_request.contents:
            for part in content.parts or ():
                if part.function_call is not None and part.function_call.id:
                    calls[part.function_call.id] = (part.function_call.name or "", part.function_call.args or {})
                response = part.function_response
                if response is not None and not _is_own(response.name, tools):
                    name, args = calls.get(response.id or "", (response.name or "", {}))
                    session.seen(name, args, id=response.id)
        # Of calls at the same time, the state has that of the last one in their order, which may not be the last in time.
        self._keep(session, callback_context)
        return None

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse | None:
        if llm_response.partial:
            return None
        session = self.session(callback_context)
        if llm_response.grounding_metadata is not None:
            # The model has searched by itself.
            session.seen("google_search")
        parts = (llm_response.content.parts if llm_response.content else None) or ()
        calls = [part.function_call for part in parts if part.function_call is not None]
        if calls:
            session.reply([(call.id or str(at), call.name or "", call.args or {}) for at, call in enumerate(calls)])
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if _is_own(tool.name, {tool.name: tool}):
            return None
        session = self.session(tool_context)
        made = _declaration(tool)
        if made is not None:
            session.declare([made])
        id = tool_context.function_call_id

        async def read(name: str) -> Any:
            return await _read(tool_context, name)

        try:
            call = await session.check_async(tool.name, tool_args, id=id, read=read)
        except GuardRefused as refused:
            self._keep(session, tool_context)
            return {"error": str(refused)}
        except Error as wrong:
            return {"error": f"entail guard refused this call: {wrong}"}
        self._calls[tool_context] = call
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        call = self._calls.pop(tool_context, None)
        if call is None:
            return None
        try:
            call.result(result)
        except GuardRefused as withheld:
            return {"error": str(withheld)}
        finally:
            self._keep(self.session(tool_context), tool_context)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        call = self._calls.pop(tool_context, None)
        if call is not None:
            try:
                call.failed(str(error))
            except GuardRefused:
                # Nothing of it is shown: the error ends the call, or another callback answers for it.
                pass
            self._keep(self.session(tool_context), tool_context)
        return None

    def _keep(self, session: GuardSession, context: CallbackContext | ToolContext) -> None:
        if isinstance(self._guard, Guard):
            changed = self._guard._changed(session, context.state.get(KEY))
            if changed is not None:
                context.state[KEY] = changed


def _is_own(name: str | None, tools: dict[str, BaseTool]) -> bool:
    """Returns whether a name is of a tool of the framework, and of no other tool."""
    tool: Any = tools.get(name or "")
    defined = getattr(tool, "func", None) or type(tool)
    return name in OWN and (tool is None or defined.__module__.startswith("google.adk."))


def _declaration(tool: BaseTool) -> dict[str, Any] | None:
    declared = tool._get_declaration()
    if declared is None:
        return None
    schema = declared.parameters_json_schema
    if schema is None and declared.parameters is not None:
        schema = {"properties": {n: {} for n in declared.parameters.properties or {}}, "required": declared.parameters.required or []}
    return {"name": tool.name, "parameters": schema if schema is not None else {"properties": {}}}


async def _read(context: ToolContext, name: str) -> Any:
    agent = context._invocation_context.agent
    for tool in await agent.canonical_tools(context):
        if tool.name == name:
            return await tool.run_async(args={}, tool_context=context)
    raise LookupError(f"the agent has no tool `{name}`")


__all__ = ["GuardPlugin"]
