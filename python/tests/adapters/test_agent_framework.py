"""The guard in the Microsoft Agent Framework, with a scripted chat client."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

import entail
from entail.adapters.agent_framework import KEY, guard_middleware

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, TOGETHER, Desk, Turn, guard, snippet


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc,type-arg]
    """A client that says its turns, by the number of replies in the conversation."""

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__()
        self.turns = turns
        self.told: list[str] = []

    def _contents(self, messages: Any) -> list[Content]:
        self.told.append(repr([m.to_dict() for m in messages]))
        at = sum(m.role == "assistant" for m in messages)
        turn = self.turns[at]
        if isinstance(turn, str):
            return [Content.from_text(turn)]
        return [Content.from_function_call(f"{at}-{i}", n, arguments=json.dumps(a)) for i, (n, a) in enumerate(turn)]

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        contents = self._contents(messages)
        if not stream:

            async def response() -> ChatResponse[Any]:
                return ChatResponse(messages=[Message("assistant", contents)])

            return response()

        async def updates() -> AsyncIterable[ChatResponseUpdate]:
            for content in contents:
                yield ChatResponseUpdate(role="assistant", contents=[content])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)


def agent(turns: list[Turn], desk: Desk, *middleware: Any) -> Agent[Any]:
    return Agent(Scripted(turns), tools=desk.functions, middleware=[m for members in middleware for m in members])


def run(agent: Agent[Any], how: str = "run", **options: Any) -> list[Any]:
    """The contents of a run, in each way to run an agent."""
    if how == "run":
        response = asyncio.run(agent.run("what is new?", **options))
    else:

        async def streamed() -> Any:
            stream = agent.run("what is new?", stream=True, **options)
            async for _ in stream:
                pass
            return await stream.get_final_response()

        response = asyncio.run(streamed())
    return [content for message in response.messages for content in message.contents]


def results(contents: list[Any]) -> list[str]:
    return [str(c.result) for c in contents if c.type == "function_result"]


WAYS = ["run", "stream"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk = Desk()
    contents = run(agent(INJECTED, desk, guard_middleware(guard())), how)
    [page, refused] = results(contents)
    assert desk.sent == [] and PAGE in page and REFUSED in refused
    assert contents[-1].text == "done"
    run(agent(INJECTED, desk), how)
    assert desk.sent == ["mallory"]


def plain(value: Any) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|af-[a-z]+-[0-9a-f]+", "ID", value)


def test_a_clean_run_is_the_same_event_by_event() -> None:
    async def events(agent: Agent[Any]) -> list[str]:
        return [plain(repr(update.to_dict())) async for update in agent.run("what is new?", stream=True)]

    bare, kept = Desk(), Desk()
    without, with_guard = agent(CLEAN, bare), agent(CLEAN, kept, guard_middleware(guard()))
    assert asyncio.run(events(with_guard)) == asyncio.run(events(without))
    assert (bare.sent, bare.made) == (kept.sent, kept.made)
    assert kept.sent == ["bob", "ann"]
    assert [plain(t) for t in with_guard.client.told] == [plain(t) for t in without.client.told]


@pytest.mark.parametrize("how", WAYS)
def test_the_calls_of_one_reply_are_decided_at_its_label(how: str) -> None:
    desk = Desk()
    found = results(run(agent(TOGETHER, desk, guard_middleware(guard())), how))
    assert desk.sent == ["bob"] and REFUSED in found[-1]


@pytest.mark.parametrize("how", WAYS)
def test_an_exception_of_a_tool_is_the_frameworks_and_taints(how: str) -> None:
    desk = Desk()
    [error, refused] = results(run(agent(BROKEN, desk, guard_middleware(guard())), how))
    assert desk.sent == [] and REFUSED in refused
    assert error == results(run(agent(BROKEN, Desk()), how))[0]


def test_sessions_share_no_label_and_keep_their_own() -> None:
    desk, middleware = Desk(), guard_middleware(guard())
    read: list[Turn] = [[("fetch", {"url": "u"})], "read", [("send", {"to": "bob", "body": "x"})], "done"]
    send: list[Turn] = [[("send", {"to": "ann", "body": "x"})], "sent"]
    first, second = AgentSession(), AgentSession()
    run(agent(read, desk, middleware), session=first)
    run(agent(send, desk, middleware), session=second)
    assert desk.sent == ["ann"]
    # The next question in another process.
    restored = AgentSession.from_dict(json.loads(json.dumps(first.to_dict())))
    assert guard().session(restored.state[KEY]).label == '["U"]'
    found = results(run(agent(read, desk, guard_middleware(guard())), session=restored))
    assert desk.sent == ["ann"] and REFUSED in found[-1]


def test_results_of_the_history_count() -> None:
    desk, session = Desk(), AgentSession()
    read: list[Turn] = [[("fetch", {"url": "u"})], "read", [("send", {"to": "bob", "body": "x"})], "done"]
    run(agent(read, desk), session=session)
    found = results(run(agent(read, desk, guard_middleware(guard())), session=session))
    assert desk.sent == [] and "`fetch`" in found[-1]


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
    found = results(run(agent(turns, desk, guard_middleware(guard(SETS, approver=approver))), how))
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert ["refused" in text for text in found] == [False, False, True, False]
    assert desk.made.count("contacts") == 1


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    made = snippet("agent_framework", tmp_path, client=Scripted(INJECTED), tools=desk.functions)["agent"]
    assert REFUSED in results(run(made))[-1] and desk.sent == []


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        guard_middleware("policy.toml")  # type: ignore[arg-type]
