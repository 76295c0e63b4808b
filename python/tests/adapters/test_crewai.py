"""The guard in CrewAI, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
pytest.importorskip("crewai")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.hooks import register_before_tool_call_hook, unregister_before_tool_call_hook
from crewai.tools import tool

import entail
from entail.adapters import crewai as adapter

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, Desk, Turn, guard, snippet


class Scripted(BaseLLM):
    """A model that says its turns, by the number of its calls in the conversation."""

    turns: list[Any]
    told: list[Any] = []

    def call(self, messages: Any, tools: Any = None, callbacks: Any = None, available_functions: Any = None, **_: Any) -> Any:
        self.told.append(json.loads(json.dumps(messages, default=str)))
        at = sum(m["role"] == "assistant" for m in messages)
        turn = self.turns[at]
        if isinstance(turn, str):
            return turn
        return [{"id": f"{at}-{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, (n, a) in enumerate(turn)]

    async def acall(self, *args: Any, **named: Any) -> Any:
        return self.call(*args, **named)

    def supports_function_calling(self) -> bool:
        return True

    def supports_stop_words(self) -> bool:
        return False

    def get_context_window_size(self) -> int:
        return 100_000


def tools(desk: Desk) -> list[Any]:
    def named(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__doc__, call.__annotations__, call.__signature__ = function.__doc__, function.__annotations__, __import__("inspect").signature(function)  # type: ignore[attr-defined]
        call.__name__ = function.__name__
        return tool(function.__name__)(call)

    return [named(f) for f in desk.functions]


def crew(turns: list[Turn], desk: Desk) -> Crew:
    clerk = Agent(role="clerk", goal="help", backstory="a clerk", llm=Scripted(model="scripted", turns=turns, told=[]), tools=tools(desk))
    task = Task(description="what is new?", expected_output="an answer", agent=clerk)
    return Crew(agents=[clerk], tasks=[task])


def told(crew: Crew) -> list[Any]:
    model = crew.agents[0].llm
    assert isinstance(model, Scripted)
    return model.told


def results(crew: Crew) -> list[str]:
    return [str(m["content"]) for m in told(crew)[-1] if m["role"] == "tool"]


def run(crew: Crew, how: str = "kickoff") -> str:
    if how == "kickoff":
        return str(crew.kickoff())
    return str(asyncio.run(getattr(crew, how)()))


@pytest.fixture
def installed() -> Iterator[adapter.InstalledGuard]:
    made = adapter.install(guard())
    yield made
    made.uninstall()


WAYS = ["kickoff", "kickoff_async", "akickoff"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk, made = Desk(), adapter.install(guard())
    guarded = crew(INJECTED, desk)
    assert run(guarded, how) == "done"
    made.uninstall()
    [page, refused] = results(guarded)
    assert desk.sent == [] and page == PAGE and refused.startswith(REFUSED)
    run(crew(INJECTED, desk), how)
    assert desk.sent == ["mallory"]


@pytest.mark.parametrize("how", WAYS)
def test_a_clean_run_is_the_same_message_by_message(how: str) -> None:
    bare, kept = Desk(), Desk()
    without = crew(CLEAN, bare)
    run(without, how)
    made = adapter.install(guard())
    with_guard = crew(CLEAN, kept)
    run(with_guard, how)
    made.uninstall()
    assert told(with_guard) == told(without)
    assert kept.sent == bare.sent == ["bob", "ann"]


def test_an_exception_of_a_tool_is_the_frameworks_and_taints(installed: adapter.InstalledGuard) -> None:
    desk = Desk()
    guarded = crew(BROKEN, desk)
    run(guarded)
    [error, refused] = results(guarded)
    assert desk.sent == [] and PAGE in error and refused.startswith(REFUSED)


def test_crews_share_no_label(installed: adapter.InstalledGuard) -> None:
    desk = Desk()
    reads = crew([[("fetch", {"url": "u"})], "read"], desk)
    run(reads)
    run(crew([[("send", {"to": "ann", "body": "x"})], "sent"], desk))
    assert desk.sent == ["ann"]
    model = reads.agents[0].llm
    assert isinstance(model, Scripted)
    model.turns = [[("send", {"to": "bob", "body": "x"})], "done"]
    run(reads)
    assert desk.sent == ["ann"]


def test_an_agent_without_a_crew_is_guarded(installed: adapter.InstalledGuard) -> None:
    desk = Desk()
    [agent] = crew(INJECTED, desk).agents
    agent.kickoff("what is new?")  # type: ignore[attr-defined]
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
    made, guarded = adapter.install(guard(SETS, approver=approver)), crew(turns, desk)
    run(guarded)
    made.uninstall()
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert ["refused" in text for text in results(guarded)] == [False, False, True, False]
    assert desk.made.count("contacts") == 1


def test_an_error_of_the_guard_blocks_the_call() -> None:
    desk = Desk()

    def find(context: Any) -> entail.GuardSession:
        raise RuntimeError("no such conversation")

    made, guarded = adapter.install(find), crew(CLEAN, desk)
    run(guarded)
    made.uninstall()
    assert desk.made == [] and "no such conversation" in results(guarded)[0]


def test_a_call_that_another_hook_blocks_is_blocked(installed: adapter.InstalledGuard) -> None:
    desk = Desk()

    def block(context: Any) -> bool:
        return False

    register_before_tool_call_hook(block)
    run(crew(CLEAN, desk))
    unregister_before_tool_call_hook(block)
    assert desk.made == []


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    installed: list[adapter.InstalledGuard] = []
    install = adapter.install
    monkeypatch.setattr(adapter, "install", lambda session: installed.append(install(session)))
    snippet("crewai", tmp_path)
    desk = Desk()
    guarded = crew(INJECTED, desk)
    run(guarded)
    installed[0].uninstall()
    assert desk.sent == [] and results(guarded)[-1].startswith(REFUSED)


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        adapter.install("policy.toml")  # type: ignore[arg-type]
