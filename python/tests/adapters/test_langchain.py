"""The guard in LangChain and LangGraph, with a scripted chat model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware, ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

import entail
from entail.adapters.langchain import GuardMiddleware, tool_call_wrappers

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, TOGETHER, Desk, Turn, guard, snippet


class Scripted(BaseChatModel):
    """A model that says its turns, by the number of replies in the conversation."""

    turns: list[Turn]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        return self

    def _calls(self, messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
        at = sum(isinstance(m, AIMessage) for m in messages)
        turn = self.turns[at]
        if isinstance(turn, str):
            return turn, []
        return "", [{"name": n, "args": a, "id": f"{at}-{i}", "type": "tool_call"} for i, (n, a) in enumerate(turn)]

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        content, calls = self._calls(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=content, tool_calls=calls))])

    def _stream(self, messages: list[Any], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        import json

        content, calls = self._calls(messages)
        for word in content.split():
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        for i, call in enumerate(calls):
            chunk = {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": i}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[{**chunk, "type": "tool_call_chunk"}]))  # type: ignore[list-item]
        yield ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last"))


def agent(turns: list[Turn], desk: Desk, *middleware: Any, **options: Any) -> Any:
    tools = [StructuredTool.from_function(f) for f in desk.functions]
    return create_agent(Scripted(turns=turns), tools, middleware=list(middleware), **options)


def guarded(turns: list[Turn], desk: Desk, *policy: str, **options: Any) -> Any:
    return agent(turns, desk, GuardMiddleware(guard(*policy, **options)))


ASK = {"messages": [HumanMessage("what is new?", id="ask")]}


def invoke(agent: Any, how: str, input: Any = ASK, **config: Any) -> list[Any]:
    """The messages of a run, in each way to run an agent."""
    if how == "invoke":
        return list(agent.invoke(input, config)["messages"])
    if how == "ainvoke":
        return list(asyncio.run(agent.ainvoke(input, config))["messages"])
    if how == "stream":
        *_, last = agent.stream(input, config, stream_mode="values")
        return list(last["messages"])

    async def all() -> list[Any]:
        return [state async for state in agent.astream(input, config, stream_mode="values")]

    return list(asyncio.run(all())[-1]["messages"])


def results(messages: list[Any]) -> list[tuple[str, str]]:
    return [(str(m.content), m.status) for m in messages if isinstance(m, ToolMessage)]


WAYS = ["invoke", "ainvoke", "stream", "astream"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk = Desk()
    messages = invoke(guarded(INJECTED, desk), how)
    assert desk.sent == []
    [page, refused] = results(messages)
    assert page == (PAGE, "success")
    assert refused[0].startswith(REFUSED) and refused[1] == "error"
    assert messages[-1].content == "done"
    # Without the guard it does.
    desk = Desk()
    invoke(agent(INJECTED, desk), how)
    assert desk.sent == ["mallory"]


def plain(value: Any) -> str:
    """An event without the numbers that are drawn for each run."""
    text = re.sub(r"(run-|lc_run-)?-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", repr(value))
    return re.sub(r"'(thread_id|checkpoint_ns|langgraph_checkpoint_ns|ts)': '[^']*'|tools:ID|model:ID", "", text)


@pytest.mark.parametrize("turns", [CLEAN, [[("fetch", {"url": "u"})], "done"]])
@pytest.mark.parametrize("mode", ["updates", "values", "messages", "tasks", "debug"])
def test_a_clean_run_is_the_same_event_by_event(turns: list[Turn], mode: str) -> None:
    def events(agent: Any) -> list[str]:
        return [re.sub(r"'timestamp': '[^']*'", "", plain(e)) for e in agent.stream(ASK, stream_mode=mode)]

    bare, kept = Desk(), Desk()
    without, with_guard = events(agent(turns, bare)), events(guarded(turns, kept))
    if turns is not CLEAN:
        # The label is part of the state from then on.
        assert any("entail_guard" in e for e in with_guard) or mode == "messages"
        return
    assert with_guard == without
    assert (bare.sent, bare.made) == (kept.sent, kept.made) == (["bob", "ann"], ["notes", "send", "notes", "send"])


def test_a_clean_run_is_the_same_async() -> None:
    async def events(agent: Any) -> list[str]:
        return [plain((e["event"], e["name"], e["data"])) async for e in agent.astream_events(ASK, version="v2")]

    assert asyncio.run(events(guarded(CLEAN, Desk()))) == asyncio.run(events(agent(CLEAN, Desk())))


@pytest.mark.parametrize("how", WAYS)
def test_the_calls_of_one_reply_are_decided_at_its_label(how: str) -> None:
    desk = Desk()
    messages = invoke(guarded(TOGETHER, desk), how)
    assert desk.sent == ["bob"]
    assert [status for _, status in results(messages)] == ["success", "success", "error"]


def test_calls_of_one_reply_are_counted_together() -> None:
    desk = Desk()
    turns: list[Turn] = [[("fetch", {"url": "u"})], [("vote", {}), ("vote", {})], [("vote", {})], "done"]
    messages = invoke(guarded(turns, desk), "invoke")
    assert desk.made.count("vote") == 1
    assert [status for _, status in results(messages)] == ["success", "success", "error", "error"]


@pytest.mark.parametrize("how", WAYS)
def test_an_exception_of_a_tool_is_the_frameworks_and_taints(how: str) -> None:
    for middleware in ((), (GuardMiddleware(guard()),)):
        with pytest.raises(ValueError, match="Opening hours"):
            invoke(agent(BROKEN, Desk(), *middleware), how)
    # As a message, made outside of the guard.
    desk = Desk()
    outer = ToolErrorMiddleware(lambda e, request: str(e))
    messages = invoke(agent(BROKEN, desk, outer, GuardMiddleware(guard())), how)
    assert desk.sent == []
    [error, refused] = results(messages)
    assert PAGE in error[0] and refused[0].startswith(REFUSED)
    assert "`broken`" in refused[0]


def test_threads_share_no_label_and_keep_their_own() -> None:
    desk = Desk()
    turns: list[Turn] = [
        [("fetch", {"url": "u"})], "read",
        [("send", {"to": "bob", "body": "x"})], "done",
    ]  # fmt: skip
    other: list[Turn] = [[("send", {"to": "ann", "body": "x"})], "sent"]
    saver, middleware = InMemorySaver(), GuardMiddleware(guard())
    first = agent(turns, desk, middleware, checkpointer=saver)
    second = agent(other, desk, middleware, checkpointer=saver)
    invoke(first, "invoke", configurable={"thread_id": "1"})
    invoke(second, "invoke", configurable={"thread_id": "2"})
    assert desk.sent == ["ann"]
    # The next question of the first thread, in a new process.
    again = agent(turns, desk, GuardMiddleware(guard()), checkpointer=saver)
    messages = invoke(again, "invoke", {"messages": [HumanMessage("and now?")]}, configurable={"thread_id": "1"})
    assert desk.sent == ["ann"] and results(messages)[-1][0].startswith(REFUSED)
    # Its messages are removed, and the label stays.
    state = again.get_state({"configurable": {"thread_id": "1"}})
    assert "entail_guard" in state.values
    again.update_state({"configurable": {"thread_id": "1"}}, {"messages": [RemoveMessage("__remove_all__")]})
    sending = agent(other, desk, GuardMiddleware(guard()), checkpointer=saver)
    messages = invoke(sending, "invoke", configurable={"thread_id": "1"})
    assert desk.sent == ["ann"] and results(messages)[-1][0].startswith(REFUSED)
    # A copy of the state before the page was read has not read it.
    [before] = [s for s in again.get_state_history({"configurable": {"thread_id": "1"}}) if s.next == ("__start__",)][-1:]
    assert before.values.get("entail_guard") in (None, "")


def test_results_of_the_history_count() -> None:
    desk = Desk()
    messages = invoke(guarded([[("fetch", {"url": "u"})], "read"], desk), "invoke")
    turns: list[Turn] = ["", "", [("send", {"to": "bob", "body": "x"})], "done"]
    messages = invoke(guarded(turns, desk), "invoke", {"messages": [*messages, HumanMessage("and now?")]})
    assert desk.sent == [] and results(messages)[-1][0].startswith(REFUSED)


def test_results_of_a_providers_own_tool_count() -> None:
    desk = Desk()
    blocks = [
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"query": "x"}},
        {"type": "server_tool_result", "tool_call_id": "s", "status": "success", "output": PAGE},
    ]
    history = [HumanMessage("?"), AIMessage(blocks)]
    turns: list[Turn] = ["", [("send", {"to": "bob", "body": "x"})], "done"]
    messages = invoke(guarded(turns, desk), "invoke", {"messages": [*history, HumanMessage("and now?")]})
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
        [("pay", {"to": "eve"}), ("transfer", {"to": "ann"})],
        "done",
    ]
    messages = invoke(guarded(turns, desk, SETS, approver=approver), how)
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert [status for _, status in results(messages)] == ["success", "success", "error", "success", "success"]
    assert desk.made == ["contacts", "fetch", "transfer", "pay", "transfer"] or sorted(desk.made[-2:]) == ["pay", "transfer"]
    assert desk.made.count("contacts") == 1


def test_a_tool_that_updates_the_state_is_labeled() -> None:
    desk = Desk()

    def fetch(url: str) -> Any:
        """Reads a page."""
        return Command(update={"messages": [ToolMessage(PAGE, tool_call_id="0-0", name="fetch")]})

    tools = [StructuredTool.from_function(f) for f in (fetch, desk.send)]
    made = create_agent(Scripted(turns=INJECTED), tools, middleware=[GuardMiddleware(guard())])
    messages = invoke(made, "invoke")
    assert desk.sent == [] and results(messages)[-1][0].startswith(REFUSED)


def test_a_retried_call_is_checked_again() -> None:
    desk, tries = Desk(), []

    def broken() -> str:
        """Fails once."""
        tries.append(1)
        if len(tries) == 1:
            raise ValueError(PAGE)
        return "fine"

    tools = [StructuredTool.from_function(f) for f in (broken, desk.send)]
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    made = create_agent(Scripted(turns=BROKEN), tools, middleware=[retry, GuardMiddleware(guard())])
    messages = invoke(made, "invoke")
    assert len(tries) == 2 and desk.sent == [] and results(messages)[-1][0].startswith(REFUSED)


def test_arguments_that_no_schema_has_are_refused() -> None:
    desk = Desk()
    turns: list[Turn] = [[("send", {"to": "bob", "body": "x", "bcc": "mallory"})], [("nope", {})], "done"]
    messages = invoke(guarded(turns, desk), "invoke")
    assert desk.sent == []
    assert "bcc" in results(messages)[0][0] and "no tool `nope`" in results(messages)[1][0]


def graph(turns: list[Turn], desk: Desk, session: Any) -> Any:
    """A graph of LangGraph with a tool node."""
    tools = [StructuredTool.from_function(f) for f in desk.functions]
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [Scripted(turns=turns).invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools, **(tool_call_wrappers(session) if session else {})))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile()


@pytest.mark.parametrize("how", WAYS)
def test_a_tool_node_is_guarded(how: str) -> None:
    desk = Desk()
    messages = invoke(graph(INJECTED, desk, guard().session()), how)
    assert desk.sent == [] and results(messages)[-1][0].startswith(REFUSED)
    desk = Desk()
    invoke(graph(TOGETHER, desk, guard().session()), how)
    assert desk.sent == ["bob"]
    # Each thread has its own.
    sessions = {"1": guard().session(), "2": guard().session()}
    found = lambda request: sessions[request.runtime.config["configurable"]["thread_id"]]
    invoke(graph([[("fetch", {"url": "u"})], "read"], desk, found), how, configurable={"thread_id": "1"})
    assert (sessions["1"].label, sessions["2"].label) == ('["U"]', "[]")


def test_a_clean_run_of_a_tool_node_is_the_same() -> None:
    def events(graph: Any) -> list[str]:
        return [plain(e) for e in graph.stream(ASK, stream_mode="updates")]

    assert events(graph(CLEAN, Desk(), guard().session())) == events(graph(CLEAN, Desk(), None))


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    tools = [StructuredTool.from_function(f) for f in desk.functions]
    made = snippet("langchain", tmp_path, model=Scripted(turns=INJECTED), tools=tools)["agent"]
    assert results(invoke(made, "invoke"))[-1][0].startswith(REFUSED) and desk.sent == []
    node = snippet("langgraph", tmp_path, tools=tools)["node"]
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [Scripted(turns=INJECTED).invoke(state["messages"])]})
    builder.add_node("tools", node)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    assert results(invoke(builder.compile(), "invoke"))[-1][0].startswith(REFUSED) and desk.sent == []


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        GuardMiddleware("policy.toml")  # type: ignore[arg-type]
