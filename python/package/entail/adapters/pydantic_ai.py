"""The guard in Pydantic AI: as a capability of an agent or of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai import ModelRetry, RunContext, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

from entail._found import Error
from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, expect


@dataclass
class GuardCapability(AbstractCapability[Any]):
    """Checks each call of a tool at the label of what the model has seen.

        agent = Agent(model, tools=tools, capabilities=[GuardCapability(entail.Guard("policy.toml"))])

    With a `Guard` each run is a session of its own, in which results of its message history count as their tools. With a `GuardSession` all
    runs are that conversation. A refused call is a failed call of the tool (`ToolFailed`).
    """

    guard: Guard | GuardSession
    _session: GuardSession | None = None

    def __post_init__(self) -> None:
        expect(self.guard, (Guard, GuardSession), "GuardCapability")

    @property
    def session(self) -> GuardSession:
        """The conversation of this run."""
        if isinstance(self.guard, GuardSession):
            return self.guard
        if self._session is None:
            self._session = self.guard.session()
        return self._session

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        return self if isinstance(self.guard, GuardSession) else replace(self, _session=self.guard.session())

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        self.session.declare({"name": t.name, "parameters": t.parameters_json_schema} for t in tool_defs)
        return tool_defs

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        self._look(request_context.messages, request_context)
        return request_context

    async def after_model_request(self, ctx: RunContext[Any], *, request_context: Any, response: ModelResponse) -> ModelResponse:
        self._look([response], request_context)
        parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
        self.session.reply([(part.tool_call_id, part.tool_name, _arguments(part)) for part in parts])
        return response

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        try:
            return await handler(args)
        except (ValidationError, ModelRetry):
            # The tool is not called: the model is told of its own arguments.
            self.session._mark(call.tool_call_id, call.tool_name, _arguments(call))
            raise

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        if tool_def.kind == "external":
            # It is carried out elsewhere. Its result is in the history of a later request.
            await self._check(ctx, call)
        return args

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        checked = await self._check(ctx, call)
        try:
            result = await handler(args)
        except (ApprovalRequired, CallDeferred):
            raise
        except Exception as e:
            _concluded(checked, None, failed=str(e))
            raise
        _concluded(checked, result)
        return result

    async def _check(self, ctx: RunContext[Any], call: ToolCallPart) -> GuardCall:
        async def read(name: str) -> Any:
            return await _read(ctx, name)

        try:
            return await self.session.check_async(call.tool_name, _arguments(call), id=call.tool_call_id, read=read)
        except GuardRefused as refused:
            raise ToolFailed(str(refused)) from None
        except Error as wrong:
            raise ToolFailed(f"entail guard refused this call: {wrong}") from None

    def _look(self, messages: Sequence[ModelMessage], request_context: Any) -> None:
        """Takes note of results that are not of this session: of its history, and of tools of the provider."""
        # What the model is told of its own answer is the framework's.
        answers = {tool.name for tool in request_context.model_request_parameters.output_tools}
        calls: dict[str, ToolCallPart | NativeToolCallPart] = {}
        for message in messages:
            if isinstance(message, (ModelRequest, ModelResponse)):
                for part in message.parts:
                    if isinstance(part, (ToolCallPart, NativeToolCallPart)):
                        calls[part.tool_call_id] = part
                    elif isinstance(part, (ToolReturnPart, NativeToolReturnPart)) and part.tool_name not in answers:
                        call = calls.get(part.tool_call_id)
                        self.session.seen(part.tool_name, _arguments(call) if call else {}, id=part.tool_call_id)


def _arguments(call: ToolCallPart | NativeToolCallPart) -> dict[str, Any]:
    try:
        return dict(call.args_as_dict())
    except Exception:
        # Its arguments are no JSON object, so it is not carried out.
        return {}


def _concluded(call: GuardCall, result: Any, failed: str | None = None) -> None:
    try:
        if failed is not None:
            call.failed(failed)
        elif isinstance(result, ToolReturn):
            # There is more in it than what it returns.
            call.failed("")
        else:
            call.result(_data(result))
    except GuardRefused as withheld:
        raise ToolFailed(str(withheld)) from None


def _data(result: Any) -> Any:
    try:
        return to_jsonable_python(result)
    except Exception:
        return result


async def _read(ctx: RunContext[Any], name: str) -> Any:
    manager = ctx.tool_manager
    tool = (manager.tools or {}).get(name) if manager is not None else None
    if manager is None or tool is None:
        raise LookupError(f"the agent has no tool `{name}`")
    args = tool.args_validator.validate_python({})
    return _data(await manager.toolset.call_tool(name, args, ctx, tool))


__all__ = ["GuardCapability"]
