"""The guard in LangChain and LangGraph: as middleware of `create_agent`, and around the calls of a `ToolNode`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any

from langchain.agents.middleware.types import AgentMiddleware, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import NotRequired, TypedDict

from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, expect

#: The key of the state that a session is kept under.
KEY = "entail_guard"

#: The output of a tool node for a call.
Output = Any


class ToolCallWrappers(TypedDict):
    """Arguments of a `ToolNode`."""

    wrap_tool_call: Callable[[ToolCallRequest, Callable[[ToolCallRequest], Output]], Output]
    awrap_tool_call: Callable[[ToolCallRequest, Callable[[ToolCallRequest], Awaitable[Output]]], Awaitable[Output]]


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Checks each call of a tool at the label of what the model has seen.

        agent = create_agent(model, tools, middleware=[GuardMiddleware(entail.Guard("policy.toml"))])

    The session is part of the agent's state: it is kept and restored with the conversation, and a copy of the state goes on by itself. Put
    the middleware last, so that the arguments that it compares are those of the call. A refused call is a `ToolMessage` with
    `status="error"`.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        expect(guard, (Guard,), "GuardMiddleware")
        self._guard = guard

        def joined(old: str | None, new: str | None) -> str | None:
            if old is None or new is None or old == new:
                return new if old is None else old
            session = guard.session(old)
            session.join(new)
            return session.save()

        # With a type that has no empty value the state has nothing of it before something was read.
        kept = NotRequired[Annotated[str | None, PrivateStateAttr, joined]]
        self.state_schema = TypedDict("GuardState", {KEY: kept})  # type: ignore

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Output]) -> Output:
        guarded = self._open(request)
        try:
            call = guarded.session.check(*guarded.call, id=guarded.id, read=_reader(request))
        except GuardRefused as refused:
            return guarded.close(_refusal(request, refused))
        return guarded.close(_concluded(request, call, handler(request)))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Output]]) -> Output:
        guarded = self._open(request)
        try:
            call = await guarded.session.check_async(*guarded.call, id=guarded.id, read=_areader(request))
        except GuardRefused as refused:
            return guarded.close(_refusal(request, refused))
        return guarded.close(_concluded(request, call, await handler(request)))

    def _open(self, request: ToolCallRequest) -> _Kept:
        state = request.state
        saved = state.get(KEY) if isinstance(state, dict) else getattr(state, KEY, None)
        session = self._guard.session(saved)
        _look(session, request)
        session._assume_made(str(request.tool_call["id"]))
        return _Kept(session, request, self._guard, saved)


def tool_call_wrappers(session: GuardSession | Callable[[ToolCallRequest], GuardSession]) -> ToolCallWrappers:
    """Arguments of a `ToolNode` that check its calls: `ToolNode(tools, **tool_call_wrappers(session))`.

    A graph has the state that its author gives it, so the session is in memory. It is one conversation; a function finds that of a call, for
    example by `request.runtime.config["configurable"]["thread_id"]`.
    """

    if not callable(session):
        expect(session, (GuardSession,), "tool_call_wrappers")

    def opened(request: ToolCallRequest) -> _Opened:
        found = session if isinstance(session, GuardSession) else session(request)
        _look(found, request)
        return _Opened(found, request)

    def wrap(request: ToolCallRequest, handler: Callable[[ToolCallRequest], Output]) -> Output:
        guarded = opened(request)
        try:
            call = guarded.session.check(*guarded.call, id=guarded.id, read=_reader(request))
        except GuardRefused as refused:
            return guarded.close(_refusal(request, refused))
        return guarded.close(_concluded(request, call, handler(request)))

    async def awrap(request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Output]]) -> Output:
        guarded = opened(request)
        try:
            call = await guarded.session.check_async(*guarded.call, id=guarded.id, read=_areader(request))
        except GuardRefused as refused:
            return guarded.close(_refusal(request, refused))
        return guarded.close(_concluded(request, call, await handler(request)))

    return {"wrap_tool_call": wrap, "awrap_tool_call": awrap}


class _Opened:
    """A call with its session, which is in memory."""

    def __init__(self, session: GuardSession, request: ToolCallRequest) -> None:
        self.session = session
        self.id = str(request.tool_call["id"])
        self.call = (request.tool_call["name"], request.tool_call["args"])

    def close(self, output: Output) -> Output:
        return output


class _Kept(_Opened):
    """A call with its session, which is in the state."""

    def __init__(self, session: GuardSession, request: ToolCallRequest, guard: Guard, kept: str | None) -> None:
        super().__init__(session, request)
        self._guard = guard
        self._kept = kept

    def close(self, output: Output) -> Output:
        saved = self._guard._changed(self.session, self._kept)
        if saved is None:
            return output
        if isinstance(output, ToolMessage):
            return Command(update={"messages": [output], KEY: saved})
        if isinstance(output, Command) and output.graph is None and isinstance(output.update, dict):
            return replace(output, update={**output.update, KEY: saved})
        return [*(output if isinstance(output, list) else [output]), Command(update={KEY: saved})]


def _messages(request: ToolCallRequest) -> list[AnyMessage]:
    state = request.state
    if isinstance(state, list):
        return state
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return found if isinstance(found, list) else []


def _look(session: GuardSession, request: ToolCallRequest) -> None:
    """Takes note of the tools, of the results that the model was shown, and of the calls of its last reply."""
    tools: Iterable[Any] = getattr(request.runtime, "tools", None) or ()
    known = [tool for tool in tools if isinstance(tool, BaseTool)]
    if request.tool is not None and all(tool.name != request.tool.name for tool in known):
        known.append(request.tool)
    session.declare(_declaration(tool) for tool in known)
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    last: AIMessage | None = None
    for message in _messages(request):
        if isinstance(message, AIMessage):
            last = message
            calls |= {str(call["id"]): (call["name"], call["args"]) for call in message.tool_calls}
            _look_at_provider(session, message)
        elif isinstance(message, ToolMessage):
            name, args = calls.get(message.tool_call_id, (message.name or "", {}))
            session.seen(name, args, id=message.tool_call_id)
    if last is not None:
        made = [(str(call["id"]), call["name"], call["args"]) for call in last.tool_calls]
        session.reply(made, id=json.dumps([last.id, [call[0] for call in made]]))


def _look_at_provider(session: GuardSession, message: AIMessage) -> None:
    """Tools that the provider has carried out: their results are in the reply."""
    if not isinstance(message.content, list):
        return
    names = {}
    for block in message.content_blocks:
        if block["type"] == "server_tool_call":
            names[block.get("id")] = block.get("name")
        elif block["type"] == "server_tool_result":
            id = block.get("tool_call_id")
            session.seen(str(names.get(id) or "server_tool"), id=f"{message.id}/{id}")


def _declaration(tool: BaseTool) -> dict[str, Any]:
    function = convert_to_openai_tool(tool)["function"]
    return {"name": tool.name, "parameters": function.get("parameters")}


def _refusal(request: ToolCallRequest, refused: GuardRefused) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(str(refused), name=call["name"], tool_call_id=str(call["id"]), status="error")


def _concluded(request: ToolCallRequest, call: GuardCall, output: Output) -> Output:
    """The output, once its label is known; or that it is withheld."""
    try:
        if isinstance(output, ToolMessage) and isinstance(output.content, str) and output.status != "error":
            call.result(output.content)
        else:
            # Of a failure, of several contents and of an update of the state, all parts count.
            call.failed("")
    except GuardRefused as withheld:
        return _refusal(request, withheld)
    return output


def _tool(request: ToolCallRequest, name: str) -> BaseTool:
    for tool in getattr(request.runtime, "tools", None) or ():
        if isinstance(tool, BaseTool) and tool.name == name:
            return tool
    raise LookupError(f"the agent has no tool `{name}`")


def _reader(request: ToolCallRequest) -> Callable[[str], Any]:
    return lambda name: _tool(request, name).invoke({})


def _areader(request: ToolCallRequest) -> Callable[[str], Any]:
    async def read(name: str) -> Any:
        return await _tool(request, name).ainvoke({})

    return read


__all__ = ["GuardMiddleware", "ToolCallWrappers", "tool_call_wrappers"]
