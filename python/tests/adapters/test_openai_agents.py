"""The guard in the OpenAI Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    AgentHooks,
    HostedMCPTool,
    ModelSettings,
    RunConfig,
    Runner,
    SQLiteSession,
    ToolInputGuardrailTripwireTriggered,
    UserError,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool
from openai.types.responses import ResponseFunctionWebSearch
from openai.types.responses.response_function_web_search import ActionSearch

import entail
from entail.adapters.openai_agents import guarded

from scenario import BROKEN, CLEAN, INJECTED, PAGE, REFUSED, SETS, TOGETHER, Desk, Turn, guard, snippet

CONFIG = RunConfig(tracing_disabled=True)


def steps(turns: list[Turn], name: str = "") -> list[Any]:
    made: list[Any] = []
    for at, turn in enumerate(turns):
        if isinstance(turn, str):
            made.append([assistant_message(turn, item_id=f"m{at}")])
        else:
            made.append([function_call(n, a, call_id=f"{name}{at}-{i}") for i, (n, a) in enumerate(turn)])
    return made


def agent(turns: list[Turn], desk: Desk, name: str = "clerk", **options: Any) -> Agent[Any]:
    tools = [function_tool(f, failure_error_function=lambda _, e: str(e)) for f in desk.functions]
    options.setdefault("tools", tools)
    return Agent(name=name, model=ScriptedModel(steps(turns, name)), **options)


def run(agent: Agent[Any], how: str = "run", input: Any = "what is new?", **options: Any) -> Any:
    """The result of a run, in each way to run an agent."""
    if how == "run":
        return asyncio.run(Runner.run(agent, input, run_config=CONFIG, **options))
    if how == "sync":
        return Runner.run_sync(agent, input, run_config=CONFIG, **options)

    async def streamed() -> Any:
        result = Runner.run_streamed(agent, input, run_config=CONFIG, **options)
        async for _ in result.stream_events():
            pass
        return result

    return asyncio.run(streamed())


def results(result: Any) -> list[str]:
    return [str(item.output) for item in result.new_items if item.type == "tool_call_output_item"]


WAYS = ["run", "sync", "streamed"]


@pytest.mark.parametrize("how", WAYS)
def test_an_injected_result_does_not_reach_the_sink(how: str) -> None:
    desk = Desk()
    result = run(guarded(agent(INJECTED, desk), guard()), how)
    assert desk.sent == []
    [page, refused] = results(result)
    assert page == PAGE and refused.startswith(REFUSED)
    assert result.final_output == "done"
    assert result.tool_input_guardrail_results[-1].output.output_info["event"] == "refused"
    desk = Desk()
    run(agent(INJECTED, desk), how)
    assert desk.sent == ["mallory"]


def plain(event: Any) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(event))
    return re.sub(r"guardrail_results=\[.*?\]|created_at=[0-9.]+", "", text)


def test_a_clean_run_is_the_same_event_by_event() -> None:
    async def events(agent: Agent[Any]) -> list[str]:
        result = Runner.run_streamed(agent, "what is new?", run_config=CONFIG)
        told = []
        async for event in result.stream_events():
            if event.type == "run_item_stream_event":
                told.append((event.name, event.item.raw_item))
            elif event.type == "raw_response_event":
                told.append(event.data)
        return [plain(e) for e in [*told, result.final_output, result.to_input_list()]]

    bare, kept = Desk(), Desk()
    without = asyncio.run(events(agent(CLEAN, bare)))
    with_guard = asyncio.run(events(guarded(agent(CLEAN, kept), guard())))
    assert with_guard == without
    assert (bare.sent, bare.made) == (kept.sent, kept.made)
    assert kept.sent == ["bob", "ann"]


def test_the_model_is_asked_the_same() -> None:
    def asked(made: Agent[Any]) -> list[str]:
        run(made)
        assert isinstance(made.model, ScriptedModel)
        return [plain((c.system_instructions, c.input, [(t.name, t.params_json_schema) for t in c.tools])) for c in made.model.calls]  # type: ignore[union-attr]

    assert asked(guarded(agent(CLEAN, Desk()), guard())) == asked(agent(CLEAN, Desk()))


@pytest.mark.parametrize("how", WAYS)
def test_the_calls_of_one_reply_are_decided_at_its_label(how: str) -> None:
    desk = Desk()
    result = run(guarded(agent(TOGETHER, desk), guard()), how)
    assert desk.sent == ["bob"]
    assert results(result)[-1].startswith(REFUSED)


@pytest.mark.parametrize("how", WAYS)
def test_an_exception_of_a_tool_is_the_frameworks_and_taints(how: str) -> None:
    desk = Desk()
    result = run(guarded(agent(BROKEN, desk), guard()), how)
    assert desk.sent == []
    assert results(result)[0] == PAGE and results(result)[1].startswith(REFUSED)
    for attach in (lambda a: a, lambda a: guarded(a, guard())):
        tools = [function_tool(Desk().broken, failure_error_function=None)]
        with pytest.raises(UserError, match="Opening hours"):
            run(attach(agent(BROKEN, desk, tools=tools)), how)


def test_sessions_share_no_label() -> None:
    desk, both = Desk(), guard()
    first, second = both.session(), both.session()
    run(guarded(agent([[("fetch", {"url": "u"})], "read"], desk), first))
    run(guarded(agent([[("send", {"to": "ann", "body": "x"})], "sent"], desk), second))
    assert desk.sent == ["ann"] and (first.label, second.label) == ('["U"]', "[]")
    # The next run of the first conversation.
    run(guarded(agent([[("send", {"to": "bob", "body": "x"})], "done"], desk), first))
    assert desk.sent == ["ann"]


def test_a_session_is_found_by_the_context() -> None:
    desk, sessions = Desk(), {"a": guard().session(), "b": guard().session()}
    for user, turns in [("a", INJECTED), ("b", CLEAN)]:
        made = guarded(agent(turns, desk), lambda context: sessions[context.context])
        run(made, context=user)
    assert desk.sent == ["bob", "ann"]
    assert (sessions["a"].label, sessions["b"].label) == ('["U"]', "[]")


def test_results_of_the_history_count() -> None:
    desk = Desk()
    history = SQLiteSession("s")
    run(agent([[("fetch", {"url": "u"})], "read"], desk), session=history)
    result = run(guarded(agent([[("send", {"to": "bob", "body": "x"})], "done"], desk), guard()), session=history)
    assert desk.sent == [] and "`fetch`" in results(result)[-1]


def test_results_of_a_providers_own_tool_count() -> None:
    desk = Desk()
    search = ResponseFunctionWebSearch(
        id="ws", action=ActionSearch(query="x", type="search"), status="completed", type="web_search_call"
    )
    script = [[search, function_call("send", {"to": "mallory", "body": "x"}, call_id="1")], [assistant_message("done")]]
    made = agent([], desk, tools=[WebSearchTool(), function_tool(desk.send)])
    made.model = ScriptedModel(script)  # type: ignore[arg-type]
    result = run(guarded(made, guard()))
    assert desk.sent == [] and "`web_search`" in results(result)[-1]


def test_agents_that_are_handed_off_to_are_guarded() -> None:
    for wrap in (lambda a: a, handoff):
        desk = Desk()
        second = agent([[("send", {"to": "mallory", "body": "x"})], "done"], desk, "writer")
        first = agent([[("fetch", {"url": "u"})], [("transfer_to_writer", {})]], desk)
        first.handoffs = [wrap(second)]
        second.handoffs = [first]
        result = run(guarded(first, guard()))
        assert desk.sent == [] and results(result)[-1].startswith(REFUSED)
        assert result.last_agent.name == "writer"
        # The answer of a handoff is the framework's, and taints nothing.
        desk = Desk()
        second = agent([[("send", {"to": "bob", "body": "x"})], "done"], desk, "writer")
        first = agent([[("transfer_to_writer", {})]], desk, handoffs=[wrap(second)])
        run(guarded(first, guard()))
        assert desk.sent == ["bob"]


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
    result = run(guarded(agent(turns, desk), guard(SETS, approver=approver)), how)
    assert asked == [("pay", {"to": "eve"}, {"to": ["U"]})]
    assert ["refused" in text for text in results(result)] == [False, False, True, False]
    assert desk.made.count("contacts") == 1 and desk.made.count("transfer") == 1


def test_hooks_of_the_agent_are_called() -> None:
    told: list[str] = []

    class Hooks(AgentHooks[Any]):
        async def on_start(self, *_: Any) -> None:
            told.append("start")

        async def on_end(self, *_: Any) -> None:
            told.append("end")

        async def on_llm_start(self, *_: Any) -> None:
            told.append("llm_start")

        async def on_llm_end(self, *_: Any) -> None:
            told.append("llm_end")

        async def on_tool_start(self, *_: Any) -> None:
            told.append("tool_start")

        async def on_tool_end(self, *_: Any) -> None:
            told.append("tool_end")

    made = agent([[("notes", {})], "done"], Desk(), hooks=Hooks())
    run(made)
    without, told[:] = list(told), []
    made = agent([[("notes", {})], "done"], Desk(), hooks=Hooks())
    run(guarded(made, guard()))
    assert told == without and "tool_end" in told
    assert isinstance(made.hooks, Hooks)


def test_tools_that_have_no_guardrails_are_an_error() -> None:
    hosted = HostedMCPTool({"type": "mcp", "server_label": "x", "server_url": "https://example.org", "require_approval": "never"})
    with pytest.raises(entail.Error, match="can't be checked"):
        guarded(Agent(name="clerk", tools=[hosted]), guard())


class Server(MCPServer):
    """A server of MCP in this process."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    @property
    def name(self) -> str:
        return "desk"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> list[MCPTool]:
        text = {"type": "string"}
        return [
            MCPTool(name="fetch", inputSchema={"type": "object", "properties": {"url": text}, "required": ["url"]}),
            MCPTool(name="send", inputSchema={"type": "object", "properties": {"to": text, "body": text}}),
        ]

    async def call_tool(self, tool_name: str, arguments: Any, *_: Any, **__: Any) -> CallToolResult:
        result = getattr(self._desk, tool_name)(**arguments)
        return CallToolResult(content=[TextContent(type="text", text=result)])

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, *_: Any) -> Any: ...


def test_tools_of_mcp_servers_are_guarded() -> None:
    desk = Desk()
    server = Server(desk)
    for _ in range(2):
        result = run(guarded(agent(INJECTED, desk, tools=[], mcp_servers=[server]), guard()))
        assert desk.sent == [] and "`send` may be called" in results(result)[-1]
    assert len(server.tool_input_guardrails or []) == 1
    # An agent without a guard that shares the server is as before.
    run(agent(INJECTED, desk, tools=[], mcp_servers=[server]))
    assert desk.sent == ["mallory"]


def test_arguments_that_are_wrong_are_refused() -> None:
    desk = Desk()
    made = agent([], desk)
    calls = [function_call("send", text, call_id=str(i)) for i, text in enumerate(["[1]", '{"to": "a", "bcc": "m"}', "{"])]
    made.model = ScriptedModel([calls, [assistant_message("done")]])
    result = run(guarded(made, guard()))
    assert desk.sent == [] and all("refused" in text for text in results(result))


def test_the_lines_of_the_guide_attach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    result = snippet("openai_agents", tmp_path, agent=agent(INJECTED, desk))["result"]
    assert results(result)[-1].startswith(REFUSED) and desk.sent == []


def test_a_policy_in_place_of_a_guard_is_an_error() -> None:
    with pytest.raises(entail.Error, match="takes an `entail.Guard`"):
        guarded(agent([], Desk()), "policy.toml")  # type: ignore[arg-type]
