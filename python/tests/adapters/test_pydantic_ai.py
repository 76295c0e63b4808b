"""The guard in Pydantic AI, with its function model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelRetry, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.tools import ToolDefinition

import entail
from entail.adapters.pydantic_ai import GuardCapability

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, TOGETHER, Desk, Turn, guard, snippet


class Mail(BaseModel):
    to: str
    body: str


def scripted(turns: list[Any]) -> FunctionModel:
    """A model that says its turns, by the number of replies in the conversation."""

    def turn(messages: list[ModelMessage]) -> tuple[int, Any]:
        at = sum(isinstance(m, ModelResponse) for m in messages)
        return at, turns[at]

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        at, said = turn(messages)
        if isinstance(said, str):
            return ModelResponse([TextPart(said)])
        parts = [p if not isinstance(p, tuple) else ToolCallPart(*p, tool_call_id=f"{at}-{i}") for i, p in enumerate(said)]
        return ModelResponse(parts)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        at, said = turn(messages)
        if isinstance(said, str):
            yield said
        else:
            for i, (name, args) in enumerate(said):
                yield {i: DeltaToolCall(name, json.dumps(args), tool_call_id=f"{at}-{i}")}

    return FunctionModel(reply, stream_function=stream)


def agent(turns: list[Any], desk: Desk, *capabilities: Any, **options: Any) -> Agent[Any, Any]:
    options.setdefault("tools", desk.functions)
    return Agent(scripted(turns), capabilities=list(capabilities), **options)


def guarded(turns: list[Any], desk: Desk, *policy: str, **options: Any) -> Agent[Any, Any]:
    return agent(turns, desk, GuardCapability(guard(*policy, **options)))


def run(agent: Agent[Any, Any], how: str = "run", **options: Any) -> list[ModelMessage]:
    """The messages of a run, in each way to run an agent."""
    if how == "run":
        return asyncio.run(agent.run("what is new?", **options)).all_messages()
    if how == "sync":
        return agent.run_sync("what is new?", **options).all_messages()
    if how == "iter":

        async def nodes() -> list[ModelMessage]:
            async with agent.iter("what is new?", **options) as all:
                async for _ in all:
                    pass
            return all.all_messages()

        return asyncio.run(nodes())

    async def streamed() -> list[ModelMessage]:
        async with agent.run_stream("what is new?", **options) as result:
            await result.get_output()
            return result.all_messages()

    return asyncio.run(streamed())


def results(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    parts = (part for message in messages for part in message.parts)
    return [(str(part.content), part.outcome) for part in parts if isinstance(part, ToolReturnPart)]


WAYS = ["run", "sync", "iter", "stream"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk = Desk()
    [page, refused] = results(run(guarded(INJECTED, desk), how))
    assert desk.sent == []
    assert page == (PAGE, "success")
    assert refused[0].startswith(REFUSED) and refused[1] == "failed"
    desk = Desk()
    run(agent(INJECTED, desk), how)
    assert desk.sent == ["mallory"]


def plain(value: Any) -> str:
    text = re.sub(r"datetime\.datetime\([^)]*(\([^)]*\))?[^)]*\)", "TIME", repr(value))
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)


def test_a_clean_run_is_the_same_event_by_event() -> None:
    async def events(agent: Agent[Any, Any]) -> list[str]:
        async with agent.run_stream_events("what is new?") as stream:
            return [plain(event) async for event in stream]

    bare, kept = Desk(), Desk()
    without, with_guard = asyncio.run(events(agent(CLEAN, bare))), asyncio.run(events(guarded(CLEAN, kept)))
    assert with_guard == without
    assert (bare.sent, bare.made) == (kept.sent, kept.made)
    assert kept.sent == ["bob", "ann"]


@pytest.mark.parametrize("how", WAYS)
def test_a_clean_run_has_the_same_messages(how: str) -> None:
    assert plain(run(guarded(CLEAN, Desk()), how)) == plain(run(agent(CLEAN, Desk()), how))


@pytest.mark.parametrize("how", WAYS)
def test_the_calls_of_one_reply_are_decided_at_its_label(how: str) -> None:
    desk = Desk()
    messages = run(guarded(TOGETHER, desk), how)
    assert desk.sent == ["bob"]
    assert [outcome for _, outcome in results(messages)] == ["success", "success", "failed"]


@pytest.mark.parametrize("how", WAYS)
def test_an_exception_of_a_tool_is_the_frameworks_and_taints(how: str) -> None:
    for capabilities in ((), (GuardCapability(guard()),)):
        with pytest.raises(ValueError, match="Opening hours"):
            run(agent(BROKEN, Desk(), *capabilities), how)

    def broken() -> str:
        """Fails."""
        raise ModelRetry(PAGE)

    desk = Desk()
    messages = run(agent(BROKEN, desk, GuardCapability(guard()), tools=[broken, desk.send]), how)
    assert desk.sent == [] and PAGE in results(messages)[0][0] and results(messages)[1][0].startswith(REFUSED)


def test_runs_share_no_label_and_a_session_does() -> None:
    desk, capability = Desk(), GuardCapability(guard())
    read: list[Any] = [[("fetch", {"url": "u"})], "read"]
    send: list[Any] = [[("send", {"to": "ann", "body": "x"})], "sent"]
    history = run(agent(read, desk, capability))
    run(agent(send, desk, capability))
    assert desk.sent == ["ann"]
    # The history of the first run counts.
    again: list[Any] = ["", "", [("send", {"to": "bob", "body": "x"})], "done"]
    messages = run(agent(again, desk, capability), message_history=history)
    assert desk.sent == ["ann"] and "`fetch`" in results(messages)[-1][0]
    session = guard().session()
    run(agent(read, desk, GuardCapability(session)))
    run(agent(send, desk), capabilities=[GuardCapability(session)])
    assert desk.sent == ["ann"] and session.label == '["U"]'


def test_runs_at_the_same_time_share_no_label() -> None:
    async def all() -> list[Any]:
        runs = []
        for turns in [INJECTED, CLEAN] * 4:
            desk = Desk()
            capability = shared
            runs.append((desk, agent(turns, desk, capability).run("?")))
        await asyncio.gather(*(r for _, r in runs))
        return [desk.sent for desk, _ in runs]

    shared = GuardCapability(guard())
    assert asyncio.run(all()) == [[], ["bob", "ann"]] * 4


def test_results_of_a_providers_own_tool_count() -> None:
    desk = Desk()
    native = [NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="w"), NativeToolReturnPart("web_search", PAGE, tool_call_id="w")]
    turns: list[Any] = [[*native, ("send", {"to": "mallory", "body": "x"})], "done"]
    messages = run(guarded(turns, desk))
    assert desk.sent == [] and "`web_search`" in results(messages)[-1][0]


@pytest.mark.parametrize("how", WAYS)
def test_an_approver_is_asked_and_a_set_is_read(how: str) -> None:
    desk, asked = Desk(), []

    async def approver(approval: entail.Approval) -> bool:
        asked.append((approval.tool, approval.args, approval.labels))
        return True

    turns: list[Turn] = [
        [("fetch", {"url": "u"})],
        [("transfer", {"to": "bob"}), ("transfer", {"to": "mallory"})],
        [("pay", {"to": "eve"})],
        "done",
    ]
    messages = run(guarded(turns, desk, SETS, approver=approver), how)
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert [outcome for _, outcome in results(messages)] == ["success", "success", "failed", "success"]
    assert desk.made.count("contacts") == 1 and desk.made.count("transfer") == 1


def test_invalid_arguments_are_the_models_own() -> None:
    desk = Desk()
    turns: list[Any] = [[("send", {"to": 1})], [("send", {"to": "bob", "body": "x"})], "done"]
    messages = run(guarded(turns, desk))
    assert desk.sent == ["bob"]
    assert [outcome for _, outcome in results(messages)] == ["retried", "success"]


def test_a_tool_that_takes_one_model_and_gives_another_is_checked() -> None:
    sent: list[Mail] = []

    def send(mail: Mail) -> Mail:
        """Sends a mail."""
        sent.append(mail)
        return mail

    turns: list[Any] = [[("send", {"to": "bob", "body": "x"})], "done"]
    run(agent(turns, Desk(), GuardCapability(guard()), tools=[send]))
    assert sent == [Mail(to="bob", body="x")]


def test_a_structured_answer_of_an_earlier_run_taints_nothing() -> None:
    desk, answer = Desk(), [("final_result", {"to": "bob", "body": "x"})]
    how: dict[str, Any] = {"output_type": Mail}
    first = run(agent([[("notes", {})], answer], desk, GuardCapability(guard()), **how))
    turns: list[Any] = ["", "", [("send", {"to": "bob", "body": "x"})], answer]
    run(agent(turns, desk, GuardCapability(guard()), **how), message_history=first)
    assert desk.sent == ["bob"]


def test_calls_that_others_carry_out_are_checked() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}}
    external = ExternalToolset([ToolDefinition(name="send", parameters_json_schema=schema), ToolDefinition(name="fetch", parameters_json_schema={"type": "object", "properties": {"url": {}}})])
    how: dict[str, Any] = {"tools": [], "toolsets": [external], "output_type": [str, DeferredToolRequests]}
    session = guard().session()
    first = asyncio.run(agent(INJECTED, Desk(), GuardCapability(session), **how).run("?"))
    assert isinstance(first.output, DeferredToolRequests) and [c.tool_name for c in first.output.calls] == ["fetch"]
    told = DeferredToolResults(calls={"0-0": PAGE})
    then = agent(INJECTED, Desk(), GuardCapability(session), **how)
    second = asyncio.run(then.run(message_history=first.all_messages(), deferred_tool_results=told))
    assert second.output == "done" and results(second.all_messages())[-1][0].startswith(REFUSED)


def test_a_tool_that_wants_approval_of_the_framework_is_checked_when_it_runs() -> None:
    desk = Desk()
    tools = [desk.fetch, Tool(desk.send, requires_approval=True)]
    how: dict[str, Any] = {"tools": tools, "output_type": [str, DeferredToolRequests]}
    session = guard().session()
    first = asyncio.run(agent(INJECTED, desk, GuardCapability(session), **how).run("?"))
    assert isinstance(first.output, DeferredToolRequests)
    told = DeferredToolResults(approvals={"1-0": True})
    then = agent(INJECTED, desk, GuardCapability(session), **how)
    second = asyncio.run(then.run(message_history=first.all_messages(), deferred_tool_results=told))
    assert desk.sent == [] and results(second.all_messages())[-1][0].startswith(REFUSED)


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    made = snippet("pydantic_ai", tmp_path, model=scripted(INJECTED), tools=desk.functions)["agent"]
    assert results(run(made))[-1][0].startswith(REFUSED) and desk.sent == []


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        GuardCapability("policy.toml")  # type: ignore[arg-type]
