"""The guard in the OpenAI Agents SDK: as guardrails of the tools, and hooks of the agent."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    RunContextWrapper,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
)

from entail._found import Error, raised
from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, expect

#: Tools that OpenAI carries out, by their names in the SDK: their results are in the reply of the model.
PROVIDER_TOOLS = frozenset({"web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "tool_search"})

Session = Guard | GuardSession | Callable[[RunContextWrapper[Any]], GuardSession]


def guarded(agent: Agent[Any], session: Session) -> Agent[Any]:
    """A copy of an agent, and of those that it hands off to, whose calls of tools are checked.

        result = await Runner.run(guarded(agent, guard.session()), "What is new?")

    The copy is one conversation; a function finds that of a run by its context. A refused call is answered by a guardrail of the tool, as the
    SDK answers the model when it rejects a call. Tools of MCP servers are checked, too. Raises `Error` for tools that have no guardrails.
    """
    if not callable(session):
        expect(session, (Guard, GuardSession), "guarded")
    if isinstance(session, Guard):
        session = session.session()
    return _Copies(session).of(agent)


class _Copies:
    """Copies of agents that are one conversation."""

    def __init__(self, session: GuardSession | Callable[[RunContextWrapper[Any]], GuardSession]) -> None:
        self._session = session
        self._made: list[tuple[Agent[Any], Agent[Any]]] = []
        self._handoffs: set[str] = set()

    def of(self, agent: Agent[Any]) -> Agent[Any]:
        for original, made in self._made:
            if agent is original or agent is made:
                return made
        made = agent.clone(tools=[_tool(agent, tool) for tool in agent.tools], handoffs=[])
        self._made.append((agent, made))
        for server in made.mcp_servers:
            server.tool_input_guardrails = _with(server.tool_input_guardrails, CHECK, last=True)
            server.tool_output_guardrails = _with(server.tool_output_guardrails, LABEL, last=False)
        made.handoffs = [self._handoff(to) for to in agent.handoffs]
        made.hooks = GuardHooks(self._session, self._handoffs, agent.hooks)
        return made

    def _handoff(self, to: Agent[Any] | Handoff[Any, Any]) -> Agent[Any] | Handoff[Any, Any]:
        if isinstance(to, Agent):
            self._handoffs.add(Handoff.default_tool_name(to))
            return self.of(to)
        self._handoffs.add(to.tool_name)
        made, invoke = copy.copy(to), to.on_invoke_handoff

        async def on_invoke_handoff(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
            return self.of(await invoke(context, arguments))

        made.on_invoke_handoff = on_invoke_handoff
        return made


class GuardHooks(AgentHooks[Any]):
    """Hooks of a guarded agent, before those that it has."""

    def __init__(
        self,
        session: GuardSession | Callable[[RunContextWrapper[Any]], GuardSession],
        handoffs: set[str],
        own: AgentHooks[Any] | None,
    ) -> None:
        self._session = session
        self._handoffs = handoffs
        self._own = own

    def session(self, context: RunContextWrapper[Any]) -> GuardSession:
        """The conversation of a run."""
        return self._session if isinstance(self._session, GuardSession) else self._session(context)

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        self._look(self.session(context), input_items)
        if self._own is not None:
            await self._own.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        session = self.session(context)
        self._look(session, response.output)
        calls = []
        for item in map(_fields, response.output):
            if item.get("type") == "function_call" and isinstance(args := _arguments(item.get("arguments")), dict):
                calls.append((item["call_id"], item["name"], args))
        await _declare(session, agent, context, [name for _, name, _ in calls])
        session.reply(calls)
        if self._own is not None:
            await self._own.on_llm_end(context, agent, response)

    async def on_start(self, context: Any, agent: Any) -> None:
        if self._own is not None:
            await self._own.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        if self._own is not None:
            await self._own.on_end(context, agent, output)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        if self._own is not None:
            await self._own.on_handoff(context, agent, source)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        if self._own is not None:
            await self._own.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if self._own is not None:
            await self._own.on_tool_end(context, agent, tool, result)

    def _look(self, session: GuardSession, items: Any) -> None:
        """Takes note of results that are not of this session: of earlier runs, and of tools of the provider."""
        calls: dict[str, tuple[str, Any]] = {}
        for item in map(_fields, items):
            kind, id = str(item.get("type")), item.get("call_id") or item.get("id")
            if kind == "function_call":
                calls[item["call_id"]] = (item["name"], _arguments(item.get("arguments")))
            elif kind.endswith("_call_output") or kind == "function_call_output":
                name, args = calls.get(str(id), (kind.removesuffix("_call_output"), {}))
                if name not in self._handoffs:
                    session.seen(name, args if isinstance(args, dict) else {}, id=id)
            elif kind.endswith("_call"):
                session.seen(str(item.get("name") or kind.removesuffix("_call")), id=id)


#: Calls that were allowed, by the context of the call.
_calls: WeakKeyDictionary[RunContextWrapper[Any], GuardCall] = WeakKeyDictionary()


async def _check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    hooks, context = data.agent.hooks, data.context
    if not isinstance(hooks, GuardHooks):
        # A tool that a guarded agent shares with one that is not.
        return ToolGuardrailFunctionOutput.allow()
    args = _arguments(context.tool_arguments)
    if not isinstance(args, dict):
        why = f"entail guard refused this call: the arguments of `{context.tool_name}` are no JSON object"
        return ToolGuardrailFunctionOutput.reject_content(why)
    session = hooks.session(context)
    await _declare(session, data.agent, context, [context.tool_name])

    async def read(name: str) -> Any:
        return await _read(data.agent, context, name)

    try:
        _calls[context] = await session.check_async(context.tool_name, args, id=context.tool_call_id, read=read)
    except GuardRefused as refused:
        return ToolGuardrailFunctionOutput.reject_content(str(refused), refused.details)
    except Error as wrong:
        return ToolGuardrailFunctionOutput.reject_content(f"entail guard refused this call: {wrong}")
    return ToolGuardrailFunctionOutput.allow()


async def _label(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    call = _calls.pop(data.context, None)
    if call is None:
        return ToolGuardrailFunctionOutput.allow()
    try:
        # A text may be that of a failure, which the SDK tells the model in the same way.
        call.failed(data.output) if isinstance(data.output, str) else call.result(data.output)
    except GuardRefused as withheld:
        return ToolGuardrailFunctionOutput.reject_content(str(withheld), withheld.details)
    return ToolGuardrailFunctionOutput.allow()


CHECK: ToolInputGuardrail[Any] = ToolInputGuardrail(_check, name="entail_guard")
LABEL: ToolOutputGuardrail[Any] = ToolOutputGuardrail(_label, name="entail_guard")


def _with(guardrails: Any, own: Any, *, last: bool) -> list[Any]:
    others = [g for g in guardrails or () if g is not own]
    return [*others, own] if last else [own, *others]


def _tool(agent: Agent[Any], tool: Tool) -> Tool:
    if isinstance(tool, FunctionTool):
        made = copy.copy(tool)
        made.tool_input_guardrails = _with(tool.tool_input_guardrails, CHECK, last=True)
        made.tool_output_guardrails = _with(tool.tool_output_guardrails, LABEL, last=False)
        return made
    if isinstance(tool, HostedMCPTool) or tool.name not in PROVIDER_TOOLS:
        message = f"calls of the tool `{tool.name}` of the agent `{agent.name}` can't be checked: the SDK has no guardrails for them"
        raise raised({"code": "usage", "message": message, "help": "make it a function tool, or use an MCP server that the program calls"})
    return tool


async def _declare(session: GuardSession, agent: Any, context: Any, names: list[str]) -> None:
    """Declares the tools of an agent, and those of its servers if one of these is called that is not known."""
    session.declare(_declaration(tool) for tool in agent.tools if isinstance(tool, FunctionTool))
    if agent.mcp_servers and not session._has_declared(names):
        servers = await agent.get_mcp_tools(context)
        session.declare(_declaration(tool) for tool in servers if isinstance(tool, FunctionTool))


async def _read(agent: Agent[Any], context: Any, name: str) -> Any:
    for tool in await agent.get_all_tools(context):
        if isinstance(tool, FunctionTool) and tool.name == name:
            return await tool.on_invoke_tool(context, "{}")
    raise LookupError(f"the agent has no tool `{name}`")


def _declaration(tool: FunctionTool) -> dict[str, Any]:
    return {"name": tool.name, "parameters": tool.params_json_schema}


def _arguments(text: Any) -> Any:
    try:
        return json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError):
        return None


def _fields(item: Any) -> dict[str, Any]:
    if isinstance(item, dict):
        return item
    dump = getattr(item, "model_dump", None)
    return dump() if callable(dump) else {}


__all__ = ["GuardHooks", "guarded"]
