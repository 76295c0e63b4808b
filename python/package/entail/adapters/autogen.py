"""The guard in AutoGen: as a workbench around the tools of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, StaticWorkbench, TextResultContent, ToolResult, ToolSchema, Workbench
from pydantic_core import to_jsonable_python

from entail._found import Error
from entail._guard import Guard, GuardRefused, GuardSession, expect


class GuardedWorkbench(Workbench):
    """A workbench whose calls are checked at the label of what the agent has seen.

        agent = AssistantAgent("clerk", client, workbench=GuardedWorkbench(tools, entail.Guard("policy.toml")))

    It is one conversation: agents of a team that read each other's messages share a `GuardSession`. A refused call is a result with
    `is_error`. The session is part of the state that the agent saves.
    """

    component_type = "workbench"

    def __init__(self, tools: Workbench | list[BaseTool[Any, Any]], guard: Guard | GuardSession) -> None:
        expect(guard, (Guard, GuardSession), "GuardedWorkbench")
        self._tools = [] if isinstance(tools, Workbench) else list(tools)
        self._inner = tools if isinstance(tools, Workbench) else StaticWorkbench(self._tools)
        self._session = guard if isinstance(guard, GuardSession) else guard.session()

    @property
    def session(self) -> GuardSession:
        """The conversation."""
        return self._session

    async def list_tools(self) -> list[ToolSchema]:
        tools: list[ToolSchema] = await self._inner.list_tools()
        self._session.declare({"name": tool["name"], "parameters": tool.get("parameters")} for tool in tools)
        return tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        async def read(other: str) -> Any:
            for tool in self._tools:
                if tool.name == other:
                    return to_jsonable_python(await tool.run_json({}, cancellation_token or CancellationToken()))
            return (await self._inner.call_tool(other, {}, cancellation_token)).to_text()

        if not self._session._has_declared([name]):
            await self.list_tools()
        try:
            call = await self._session.check_async(name, arguments or {}, id=call_id, read=read)
        except GuardRefused as refused:
            return _error(name, str(refused))
        except Error as wrong:
            return _error(name, f"entail guard refused this call: {wrong}")
        result = await self._inner.call_tool(name, arguments, cancellation_token, call_id)
        try:
            if result.is_error or any(not isinstance(part, TextResultContent) for part in result.result):
                call.failed("")
            else:
                call.result(result.to_text())
        except GuardRefused as withheld:
            return _error(name, str(withheld))
        return result

    async def start(self) -> None:
        await self._inner.start()

    async def stop(self) -> None:
        await self._inner.stop()

    async def reset(self) -> None:
        await self._inner.reset()

    async def save_state(self) -> Mapping[str, Any]:
        return {"tools": await self._inner.save_state(), "entail_guard": self._session.save()}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._inner.load_state(state["tools"])
        self._session.join(state["entail_guard"])


def _error(name: str, text: str) -> ToolResult:
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)


__all__ = ["GuardedWorkbench"]
