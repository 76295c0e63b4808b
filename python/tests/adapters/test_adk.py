"""The guard in Google's ADK, with a scripted model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

import entail
from entail.adapters.adk import KEY, GuardPlugin

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, TOGETHER, Desk, Turn, guard, snippet


class Scripted(BaseLlm):
    """A model that says its turns, by the number of replies in the conversation."""

    turns: list[Any]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        at = sum(content.role == "model" for content in llm_request.contents)
        turn = self.turns[at]
        if isinstance(turn, str):
            for word in turn.split() if stream else ():
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True)
            parts = [types.Part(text=turn)]
        else:
            parts = [types.Part(function_call=types.FunctionCall(id=f"{at}-{i}", name=n, args=a)) for i, (n, a) in enumerate(turn)]
        yield LlmResponse(content=types.Content(role="model", parts=parts), partial=False)


def agent(turns: list[Turn], desk: Desk, **options: Any) -> LlmAgent:
    return LlmAgent(name="clerk", model=Scripted(model="scripted", turns=turns), tools=desk.functions, **options)


def runner(turns: list[Turn], desk: Desk, *plugins: BasePlugin) -> Runner:
    return InMemoryRunner(app=App(name="desk", root_agent=agent(turns, desk), plugins=list(plugins)))


def run(runner: Runner, how: str = "async", session: str = "s") -> list[Any]:
    """The events of a run, in each way to run an agent."""

    async def opened() -> None:
        if await runner.session_service.get_session(app_name="desk", user_id="u", session_id=session) is None:
            await runner.session_service.create_session(app_name="desk", user_id="u", session_id=session)

    asyncio.run(opened())
    ask = types.Content(role="user", parts=[types.Part(text="what is new?")])
    config = RunConfig(streaming_mode=StreamingMode.SSE if how == "stream" else StreamingMode.NONE)
    if how == "sync":
        return list(runner.run(user_id="u", session_id=session, new_message=ask, run_config=config))

    async def events() -> list[Any]:
        return [e async for e in runner.run_async(user_id="u", session_id=session, new_message=ask, run_config=config)]

    return asyncio.run(events())


def results(events: list[Any]) -> list[Any]:
    return [r.response for event in events for r in event.get_function_responses()]


WAYS = ["async", "sync", "stream"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk = Desk()
    [page, refused] = results(run(runner(INJECTED, desk, GuardPlugin(guard())), how))
    assert desk.sent == []
    assert page == {"result": PAGE}
    assert refused["error"].startswith(REFUSED)
    run(runner(INJECTED, desk), how)
    assert desk.sent == ["mallory"]


def plain(event: Any) -> str:
    text = re.sub(r"timestamp=[0-9.]+|(id|invocation_id)='[^']*'", "", repr(event))
    return re.sub(r"adk-[0-9a-f-]+|0x[0-9a-f]+", "ID", text)


@pytest.mark.parametrize("how", WAYS)
def test_a_clean_run_is_the_same_event_by_event(how: str) -> None:
    bare, kept = Desk(), Desk()
    without = [plain(e) for e in run(runner(CLEAN, bare), how)]
    with_guard = [plain(e) for e in run(runner(CLEAN, kept, GuardPlugin(guard())), how)]
    assert with_guard == without
    assert (bare.sent, bare.made) == (kept.sent, kept.made)
    assert kept.sent == ["bob", "ann"]


@pytest.mark.parametrize("how", WAYS)
def test_the_calls_of_one_reply_are_decided_at_its_label(how: str) -> None:
    desk = Desk()
    found = results(run(runner(TOGETHER, desk, GuardPlugin(guard())), how))
    assert desk.sent == ["bob"] and found[-1]["error"].startswith(REFUSED)


class Recovers(BasePlugin):
    """Tells the model of an exception."""

    async def on_tool_error_callback(self, *, error: Exception, **_: Any) -> dict[str, Any]:
        return {"error": str(error)}


@pytest.mark.parametrize("how", WAYS)
def test_an_exception_of_a_tool_is_the_frameworks_and_taints(how: str) -> None:
    for plugins in ((), (GuardPlugin(guard()),)):
        with pytest.raises(ValueError, match="Opening hours"):
            run(runner(BROKEN, Desk(), *plugins), how)
    desk = Desk()
    [error, refused] = results(run(runner(BROKEN, desk, GuardPlugin(guard()), Recovers("recovers")), how))
    assert desk.sent == [] and error == {"error": PAGE} and refused["error"].startswith(REFUSED)


def test_sessions_share_no_label_and_keep_their_own() -> None:
    desk = Desk()
    read: list[Turn] = [[("fetch", {"url": "u"})], "read", [("send", {"to": "bob", "body": "x"})], "done"]
    first = runner(read, desk, GuardPlugin(guard()))
    run(first, session="1")
    run(first, session="2")
    assert desk.made == ["fetch", "fetch"]
    # The next question in another process.
    again = Runner(app=App(name="desk", root_agent=agent(read, desk), plugins=[GuardPlugin(guard())]), session_service=first.session_service)
    assert results(run(again, session="1"))[-1]["error"].startswith(REFUSED)
    assert desk.sent == []
    kept = asyncio.run(first.session_service.get_session(app_name="desk", user_id="u", session_id="1"))
    assert kept is not None and guard().session(kept.state[KEY]).label == '["U"]'


def test_results_of_the_history_count() -> None:
    desk = Desk()
    read: list[Turn] = [[("fetch", {"url": "u"})], "read", [("send", {"to": "bob", "body": "x"})], "done"]
    first = runner(read, desk)
    run(first)
    again = Runner(app=App(name="desk", root_agent=agent(read, desk), plugins=[GuardPlugin(guard())]), session_service=first.session_service)
    [refused] = results(run(again))
    assert desk.sent == [] and "`fetch`" in refused["error"]


def test_a_transfer_taints_nothing_and_the_label_goes_along() -> None:
    for turns, sent in [([[("notes", {})]], ["ann"]), ([[("fetch", {"url": "u"})]], [])]:
        desk = Desk()
        writer = agent(["", "", [("send", {"to": "ann", "body": "x"})], "done"], desk)
        writer.name = "writer"
        first = agent([*turns, [("transfer_to_agent", {"agent_name": "writer"})]], desk, sub_agents=[writer])
        made = InMemoryRunner(app=App(name="desk", root_agent=first, plugins=[GuardPlugin(guard())]))
        model = writer.model
        assert isinstance(model, Scripted)
        model.turns = [[("send", {"to": "ann", "body": "x"})], "done"]
        run(made)
        assert desk.sent == sent


def test_the_end_of_a_loop_is_the_frameworks_and_a_tool_of_its_name_is_not() -> None:
    from google.adk.tools import exit_loop as own

    desk = Desk()

    def exit_loop() -> str:
        """A tool of the program."""
        desk.made.append("exit_loop")
        return "out"

    turns: list[Turn] = [[("fetch", {"url": "u"})], [("exit_loop", {})], "done"]
    for tool, is_refused in [(own, False), (exit_loop, True)]:
        made = agent(turns, desk)
        made.tools = [desk.fetch, tool]
        found = results(run(InMemoryRunner(app=App(name="desk", root_agent=made, plugins=[GuardPlugin(guard())]))))
        assert ("refused" in str(found[-1])) == is_refused
    assert "exit_loop" not in desk.made


def test_an_approver_is_asked_and_a_set_is_read() -> None:
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
    found = results(run(runner(turns, desk, GuardPlugin(guard(SETS, approver=approver)))))
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert ["error" in response for response in found] == [False, False, True, False]
    assert desk.made.count("contacts") == 1


def test_a_tool_that_is_not_there_is_refused() -> None:
    found = results(run(runner([[("nope", {})], "done"], Desk(), GuardPlugin(guard()))))
    assert "no tool `nope`" in found[0]["error"]


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    app = snippet("adk", tmp_path, agent=agent(INJECTED, desk))["app"]
    assert results(run(InMemoryRunner(app=app)))[-1]["error"].startswith(REFUSED) and desk.sent == []


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        GuardPlugin("policy.toml")  # type: ignore[arg-type]
