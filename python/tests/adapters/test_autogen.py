"""The guard in AutoGen, with a scripted model client."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat")

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from autogen_core.tools import FunctionTool

import entail
from entail.adapters.autogen import GuardedWorkbench

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, Desk, Turn, guard, snippet


class Scripted(ChatCompletionClient):
    """A client that says its turns, by the number of replies in the conversation."""

    def __init__(self, turns: list[Turn]) -> None:
        self._turns = turns

    async def create(self, messages: Any, **_: Any) -> CreateResult:
        at = sum(isinstance(m, AssistantMessage) for m in messages)
        turn = self._turns[at]
        content: Any = turn
        if not isinstance(turn, str):
            content = [FunctionCall(f"{at}-{i}", json.dumps(args), name) for i, (name, args) in enumerate(turn)]
        reason: Any = "stop" if isinstance(turn, str) else "function_calls"
        return CreateResult(finish_reason=reason, content=content, usage=RequestUsage(0, 0), cached=False)

    async def create_stream(self, messages: Any, **_: Any) -> AsyncGenerator[Any, None]:
        result = await self.create(messages)
        if isinstance(result.content, str):
            for word in result.content.split():
                yield word
        yield result

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, messages: Any, **_: Any) -> int:
        return 0

    remaining_tokens = count_tokens

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False, multiple_system_messages=True)


def tools(desk: Desk) -> list[Any]:
    return [FunctionTool(f, description=f.__doc__ or "") for f in desk.functions]


def agent(turns: list[Turn], attach: Any, name: str = "clerk", **options: Any) -> AssistantAgent:
    """`attach` is the workbench, or the list of tools."""
    how = {"tools": attach} if isinstance(attach, list) else {"workbench": attach}
    return AssistantAgent(name, Scripted(turns), max_tool_iterations=9, **how, **options)


def run(agent: Any, how: str = "run") -> list[Any]:
    """The messages of a run, in each way to run an agent."""
    if how == "run":
        return list(asyncio.run(agent.run(task="what is new?")).messages)

    async def streamed() -> list[Any]:
        return [message async for message in agent.run_stream(task="what is new?")]

    return list(asyncio.run(streamed())[-1].messages)


def results(messages: list[Any]) -> list[tuple[str, bool]]:
    events = [m for m in messages if isinstance(m, ToolCallExecutionEvent)]
    return [(result.content, bool(result.is_error)) for event in events for result in event.content]


WAYS = ["run", "stream"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk = Desk()
    [page, refused] = results(run(agent(INJECTED, GuardedWorkbench(tools(desk), guard())), how))
    assert desk.sent == []
    assert page == (PAGE, False)
    assert refused[0].startswith(REFUSED) and refused[1]
    run(agent(INJECTED, tools(desk)), how)
    assert desk.sent == ["mallory"]


def plain(message: Any) -> str:
    text = re.sub(r"datetime\.datetime\([^)]*\)+", "TIME", repr(message))
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_clean_run_is_the_same_event_by_event(streaming: bool) -> None:
    async def events(agent: AssistantAgent) -> list[str]:
        return [plain(event) async for event in agent.run_stream(task="what is new?")]

    bare, kept = Desk(), Desk()
    how = {"model_client_stream": streaming}
    without = asyncio.run(events(agent(CLEAN, tools(bare), **how)))
    with_guard = asyncio.run(events(agent(CLEAN, GuardedWorkbench(tools(kept), guard()), **how)))
    assert with_guard == without
    assert (bare.sent, bare.made) == (kept.sent, kept.made)
    assert kept.sent == ["bob", "ann"]


@pytest.mark.parametrize("how", WAYS)
def test_an_exception_of_a_tool_is_the_frameworks_and_taints(how: str) -> None:
    desk = Desk()
    [error, refused] = results(run(agent(BROKEN, GuardedWorkbench(tools(desk), guard())), how))
    assert desk.sent == []
    assert error == results(run(agent(BROKEN, tools(Desk())), how))[0] and PAGE in error[0] and error[1]
    assert refused[0].startswith(REFUSED)


def test_workbenches_share_no_label_and_a_session_does() -> None:
    desk, both = Desk(), guard()
    read: list[Turn] = [[("fetch", {"url": "u"})], "read"]
    send: list[Turn] = [[("send", {"to": "ann", "body": "x"})], "sent"]
    run(agent(read, GuardedWorkbench(tools(desk), both)))
    run(agent(send, GuardedWorkbench(tools(desk), both)))
    assert desk.sent == ["ann"]
    session = both.session()
    first = agent(read, GuardedWorkbench(tools(desk), session), "reader")
    second = agent(["", *send], GuardedWorkbench(tools(desk), session), "writer")
    team = RoundRobinGroupChat([first, second], termination_condition=MaxMessageTermination(3))
    run(team)
    assert desk.sent == ["ann"] and session.label == '["U"]'


def test_a_saved_workbench_goes_on_as_it_was() -> None:
    desk = Desk()

    async def moved() -> GuardedWorkbench:
        first = GuardedWorkbench(tools(desk), guard())
        await first.call_tool("fetch", {"url": "u"})
        second = GuardedWorkbench(tools(desk), guard())
        await second.load_state(await first.save_state())
        return second

    second = asyncio.run(moved())
    assert second.session.label == '["U"]'
    run(agent([[("send", {"to": "bob", "body": "x"})], "done"], second))
    assert desk.sent == []


def test_an_approver_is_asked_and_a_set_is_read() -> None:
    desk, asked = Desk(), []

    async def approver(approval: entail.Approval) -> bool:
        asked.append((approval.tool, approval.args, approval.labels))
        return True

    turns: list[Turn] = [
        [("fetch", {"url": "u"})],
        [("transfer", {"to": "bob"})],
        [("transfer", {"to": "mallory"})],
        [("pay", {"to": "eve"})],
        "done",
    ]
    messages = run(agent(turns, GuardedWorkbench(tools(desk), guard(SETS, approver=approver))))
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert [is_error for _, is_error in results(messages)] == [False, False, True, False]
    assert desk.made.count("contacts") == 1


def test_arguments_that_no_schema_has_are_refused() -> None:
    desk = Desk()
    turns: list[Turn] = [[("send", {"to": "bob", "body": "x", "bcc": "mallory"})], [("nope", {})], "done"]
    found = results(run(agent(turns, GuardedWorkbench(tools(desk), guard()))))
    assert desk.sent == [] and all(is_error for _, is_error in found)


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    made = snippet("autogen", tmp_path, model=Scripted([INJECTED[0], "read"]), tools=tools(desk))["agent"]
    run(made)
    assert desk.made == ["fetch"] and made._workbench[0].session.label == '["U"]'


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        GuardedWorkbench([], "policy.toml")  # type: ignore[arg-type]
