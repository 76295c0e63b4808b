"""The guard in the Microsoft Agent Framework: as middleware of an agent or of a run."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
)
from pydantic_core import to_jsonable_python

from entail._found import Error
from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, expect

#: The key of the state of an `AgentSession` that a conversation is kept under.
KEY = "entail_guard"


def guard_middleware(guard: Guard | GuardSession) -> list[ChatMiddleware | FunctionMiddleware]:
    """Checks each call of a tool at the label of what the model has seen.

        agent = Agent(client=client, tools=tools, middleware=guard_middleware(entail.Guard("policy.toml")))

    With a `Guard` each `AgentSession` is a conversation, which is kept in its state, and runs without one are one conversation. With a
    `GuardSession` all runs are that. Put them last, so that the arguments that are compared are those of the call. A refused call has the reason
    as its result.
    """
    expect(guard, (Guard, GuardSession), "guard_middleware")
    conversations = _Conversations(guard)
    return [_Chat(conversations), _Functions(conversations)]


class _Conversations:
    def __init__(self, guard: Guard | GuardSession) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._alone = guard if isinstance(guard, GuardSession) else guard.session()
        self._of: WeakKeyDictionary[AgentSession, GuardSession] = WeakKeyDictionary()

    def of(self, session: AgentSession | None) -> GuardSession:
        if session is None or isinstance(self._guard, GuardSession):
            return self._alone
        with self._lock:
            found = self._of.get(session)
            if found is None:
                found = self._of[session] = self._guard.session(session.state.get(KEY))
            return found

    def keep(self, session: AgentSession | None) -> None:
        if session is not None and isinstance(self._guard, Guard):
            changed = self._guard._changed(self.of(session), session.state.get(KEY))
            if changed is not None:
                session.state[KEY] = changed


class _Chat(ChatMiddleware):
    """Takes note of what the model is shown, and of the calls of its reply."""

    def __init__(self, conversations: _Conversations) -> None:
        self._conversations = conversations

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        session = self._conversations.of(context.session)
        session.declare(_declarations((context.options or {}).get("tools") or ()))
        _look(session, context.messages)
        self._conversations.keep(context.session)

        def replied(response: ChatResponse[Any]) -> None:
            _look(session, response.messages)
            contents = [content for message in response.messages for content in message.contents]
            calls = [content for content in contents if content.type == "function_call"]
            session.reply([(str(call.call_id), str(call.name), _arguments(call.arguments)) for call in calls])
            self._conversations.keep(context.session)

        if context.stream:
            context.stream_result_hooks.append(replied)
        await call_next()
        if isinstance(context.result, ChatResponse):
            replied(context.result)


class _Functions(FunctionMiddleware):
    """Checks calls."""

    def __init__(self, conversations: _Conversations) -> None:
        self._conversations = conversations

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        session = self._conversations.of(context.session)
        session.declare(_declarations([*(context.tools or ()), context.function]))

        async def read(name: str) -> Any:
            return await _read(context, name)

        try:
            args = _arguments(context.arguments)
            call = await session.check_async(context.function.name, args, id=context.metadata.get("call_id"), read=read)
        except GuardRefused as refused:
            context.result = [Content.from_text(str(refused))]
            self._conversations.keep(context.session)
            return
        except Error as wrong:
            context.result = [Content.from_text(f"entail guard refused this call: {wrong}")]
            return
        try:
            await call_next()
        except Exception as e:
            # What the framework tells the model of it has the label of the tool.
            _concluded(context, call, failed=str(e))
            self._conversations.keep(context.session)
            raise
        _concluded(context, call)
        self._conversations.keep(context.session)


def _concluded(context: FunctionInvocationContext, call: GuardCall, failed: str | None = None) -> None:
    result = context.result
    contents = result if isinstance(result, list) else [result]
    texts = [_text(content) for content in contents]
    try:
        if failed is not None:
            call.failed(failed)
        elif None not in texts:
            call.result("\n".join(text for text in texts if text is not None))
        else:
            # Of other contents all parts count.
            call.failed("")
    except GuardRefused as withheld:
        context.result = [Content.from_text(str(withheld))]


def _text(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    return content.text if getattr(content, "type", None) == "text" else None


def _look(session: GuardSession, messages: Iterable[Message]) -> None:
    """Takes note of results that are not of this session: of its history, and of tools of the provider."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages:
        for content in message.contents:
            id = str(content.call_id)
            if content.type == "function_call":
                calls[id] = (str(content.name), _arguments(content.arguments))
            elif content.type == "function_result":
                session.seen(*calls.get(id, ("", {})), id=id)
            elif content.type.endswith("_tool_result"):
                session.seen(str(getattr(content, "tool_name", None) or content.type.removesuffix("_tool_result")), id=id)


def _declarations(tools: Any) -> list[dict[str, Any]]:
    listed = tools if isinstance(tools, (list, tuple)) else [tools]
    return [{"name": t.name, "parameters": t.parameters()} for t in listed if isinstance(t, FunctionTool)]


def _arguments(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            return {}
    try:
        found = to_jsonable_python(arguments or {})
    except Exception:
        found = arguments
    return found if isinstance(found, dict) else {}


async def _read(context: FunctionInvocationContext, name: str) -> Any:
    for tool in context.tools or ():
        if isinstance(tool, FunctionTool) and tool.name == name:
            contents = await tool.invoke(arguments={})
            return "\n".join(content.text for content in contents)
    raise LookupError(f"the agent has no tool `{name}`")


__all__ = ["guard_middleware"]
