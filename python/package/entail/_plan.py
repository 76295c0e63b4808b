"""Plans: a model writes a program from a request, it is checked before it runs, and held to its policy while it runs."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, Union

from entail import _entail
from entail._bridge import finished, is_coroutine, result_of
from entail._found import Finding, ProgramError, RunError, finding, native, raised
from entail._model import Call, Model, Reply
from entail._program import Approval, Approver, Cost, Listener, Path, Program, Usage
from entail._schema import Schema, arguments, as_json
from entail._tools import Tool, tool, tools_of
from entail._toml import Policy, policy_arguments

#: A planner: a function, sync or async, from a prompt to a plan. `Plain` text or a Markdown block.
Planner = Callable[[str], Union[str, Awaitable[str]]]
#: Answers `ask` of a plan: from the prompt and the JSON Schema of the answer to data, its JSON text, or `None`.
Quarantine = Callable[[str, Schema], Any]
#: Tools of plans: functions, or what `--tools` of the command line names.
PlanTools = Union[Mapping[str, Callable[..., Any]], Iterable[Union[Tool, Callable[..., Any], str]]]
Verdict = Literal["always", "never", "depends"]


@dataclass(frozen=True)
class Flow:
    """A call of a plan, with what is known of it before the run."""

    #: `tool` or `model`.
    sink: str
    #: The tool or model.
    name: str | None
    #: `always` admitted, `never` admitted, or it `depends` on the run.
    verdict: Verdict
    #: The line in the plan.
    line: int | None
    #: Who decides as well, such as a person.
    asks: str | None
    #: Why it may be refused.
    why: str | None
    #: What to change.
    help: str | None
    #: Everything, as `entail check --show flow --format json` writes it.
    details: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Question:
    """A question to the approver, with the answer."""

    #: The call.
    asked: Approval
    #: True if it was approved.
    approved: bool
    #: What the approver said against it.
    why_not: str | None = None
    #: Arguments that the approver wrote in place of those of the call.
    edit: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ToolCalled:
    """A call of a tool that was made."""

    tool: str
    args: dict[str, Any]
    #: `ok`, `failed`, `late` or `stopped`; `open` if the run ended before the answer.
    status: str
    #: What the tool gave.
    result: Any = None
    #: Why it failed.
    error: str | None = None
    #: The label of the decision to make the call.
    label: Any = None
    #: Arguments that untrusted data chose from a set: `params`, and `of` how many values.
    choices: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class ToldError:
    """What the planner was told of a run that ended with an error."""

    #: Names the run.
    run: str
    #: The code of the error, or the class of its exception; one of a finite list.
    code: str
    #: The line of the plan.
    line: int | None
    #: Calls that were made and may have changed something: lines and tools.
    made: list[tuple[int, str]]
    #: How much of it untrusted data may have chosen, in bits.
    bits: float


@dataclass(frozen=True)
class PlanResult:
    """The outcome of a plan."""

    #: What the plan answers; `None` if it failed.
    answer: Any
    #: The label of the answer or of the error.
    label: Any
    usage: Usage
    #: Calls that were refused while the plan went on, and the one that ended it.
    refused: list[dict[str, Any]]
    #: Questions to the approver, in order.
    questions: list[Question]
    #: Calls of tools that were made, in order.
    calls: list[ToolCalled]
    #: Names the run.
    run: str
    #: Why the plan failed, if it did.
    error: RunError | None
    #: The plans that were run, the last one at the end.
    plans: list[str]
    #: Errors of earlier plans that the planner was told, in order.
    told: list[ToldError]
    #: How much of that untrusted data may have chosen, in bits.
    bits: float
    #: Everything, as `entail plan --format json` writes it.
    details: dict[str, Any] = field(repr=False, compare=False)


class PlanRun:
    """A plan that was checked and can be run.

    If it has errors, `run` raises them and nothing is run.
    """

    #: The plan, in a subset of Python.
    plan: str
    #: Its calls with what is known of them before the run, in the order of the text.
    flow: list[Flow]
    #: What keeps it from running.
    errors: list[Finding]
    #: The mistakes of earlier plans, by line, as they were told to the planner.
    feedback: list[list[tuple[int, str]]]

    def __init__(
        self,
        told: dict[str, Any],
        program: _entail.Program | None,
        feedback: list[list[tuple[int, str]]],
        how: _How,
        exchange: _entail.Planning,
        planner: str | Planner | None,
    ) -> None:
        self.plan = told["plan"]
        self.errors = [finding(f) for f in told["errors"]]
        self.flow = [_flow(f) for f in told["flow"]]
        self.feedback = feedback
        self._problem: dict[str, Any] | None = told["problem"]
        self._program = None if program is None else Program(program)
        self._how = how
        self._exchange = exchange
        self._planner = planner

    def __repr__(self) -> str:
        state = f"{len(self.errors)} errors" if self._problem else "can run"
        return f"<entail.PlanRun: {len(self.plan.splitlines())} lines, {state}>"

    def cost(self) -> Cost:
        """What a run may use. Raises `ProgramError` if the plan can't run."""
        return self._checked().cost()

    def _checked(self) -> Program:
        if self._problem is not None:
            raise raised(self._problem)
        if self._program is None:
            raise RuntimeError("a plan without errors is a program")
        return self._program

    async def run(
        self,
        *,
        check: bool = True,
        tools: Mapping[str, Callable[..., Any]] | Iterable[Tool | Callable[..., Any]] | None = None,
        quarantine: str | Quarantine | None = None,
        approver: Approver | None = None,
        listener: Listener | None = None,
        max_calls: int | None = None,
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        max_usd: float | str | Decimal | None = None,
        timeout: float | None = None,
        seed: int | None = None,
        fuel: int | None = None,
    ) -> PlanResult:
        """Runs the plan.

        `tools`, `quarantine` and `approver` take the place of those that the plan was made with. A function takes that of the tool of its
        name, whose signature stays as it was declared.

        With `replan_errors` of `entail.plan` a run that ends with an error may be followed by one of another plan: the planner is asked
        again, and all runs together may do what one may. If the planner writes none that can run, the error stays.

        Raises `ProgramError` if the plan has errors. If the run fails, raises `RunError`, whose `result` is what was done until then; with
        `check=False` that result is returned, with `error`.

        Canceling it cancels the run, with everything that is under way.
        """
        program = self._checked()
        seen = _Seen(listener)
        how = self._how.with_others(tools, quarantine, approver)
        exchange = self._exchange.again()
        plans = [self.plan]
        while True:
            outcome = await program._outcome(
                None,
                tools=[_as_run(t) for t in how.tools],
                model=how.model,
                config=how.config,
                approver=None if how.approver is None else seen.asked_by(how.approver),
                listener=None if listener is None else seen.event,
                max_calls=max_calls,
                max_tool_calls=max_tool_calls,
                max_tokens=max_tokens,
                max_usd=max_usd,
                timeout=timeout,
                seed=seed,
                fuel=fuel,
                python_tools=how.python_tools,
                planning=exchange,
            )
            for event in outcome.get("events", []):
                seen.event(event)
            if outcome.get("next") is None:
                break
            another = await self._another(exchange, outcome["next"])
            if another is None:
                break
            plan, program = another
            plans.append(plan)
            seen.next_run()
        details = outcome.get("report")
        if details is None:
            raise raised(outcome["error"])
        details = {**details, **json.loads(exchange.told())}
        if outcome.get("error") is None:
            return seen.result(details, plans, None)
        error = RunError(outcome["error"], details)
        result = seen.result(details, plans, error)
        if check:
            error.result = result
            raise error
        return result

    async def _another(self, exchange: _entail.Planning, prompt: str) -> tuple[str, Program] | None:
        """Another plan, if the planner writes one that can run."""
        while True:
            written = await _written_here(self._planner, prompt, self._how.config)
            text, program = exchange.reply(written)
            step = json.loads(text)
            if "prompt" not in step:
                return None if program is None or step["problem"] is not None else (step["plan"], Program(program))
            prompt = step["prompt"]

    def run_sync(self, **how: Any) -> PlanResult:
        """`run` where no event loop runs."""
        return asyncio.run(self.run(**how))


@dataclass(frozen=True)
class _How:
    """Who answers the requests of a plan."""

    tools: list[Tool]
    model: str | Model | None
    approver: Approver | None
    config: Path | None
    python_tools: bool

    def with_others(
        self,
        tools: Mapping[str, Callable[..., Any]] | Iterable[Tool | Callable[..., Any]] | None,
        quarantine: str | Quarantine | None,
        approver: Approver | None,
    ) -> _How:
        """With others in their place, as far as they are given."""
        own = {t.name: t for t in self.tools}
        for other in tools_of(tools):
            if other.name not in own:
                message = f"the plan was made without a function for the tool `{other.name}`"
                help = f"there is: {', '.join(own)}" if own else "give it to `entail.plan`"
                raise raised({"code": "usage", "message": message, "help": help})
            own[other.name] = other
        return replace(
            self,
            tools=list(own.values()),
            model=self.model if quarantine is None else _answering(quarantine),
            approver=approver or self.approver,
        )


class _Seen:
    """What a run did, from its events."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._calls: dict[tuple[int, str], ToolCalled] = {}
        self._run = 0
        self._questions: list[Question] = []

    def next_run(self) -> None:
        """What follows is of another plan."""
        self._run += 1

    def event(self, event: dict[str, Any]) -> None:
        request = (self._run, event["request"])
        # What an earlier plan was answered is not asked again.
        if event["event"] == "asked" and event["kind"] == "tool" and not event.get("recorded"):
            choices = event.get("choices", [])
            called = ToolCalled(event["tool"], event["args"], "open", label=event.get("label"), choices=choices)
            self._calls[request] = called
        elif event["event"] == "answered" and request in self._calls:
            made = self._calls[request]
            status, result, error = event["status"], event.get("content"), event.get("error")
            self._calls[request] = replace(made, status=status, result=result, error=error)
        if self._listener is not None:
            self._listener(event)

    def asked_by(self, approver: Approver) -> Approver:
        """The approver, with a record of what it is asked and says."""

        async def ask(approval: Approval) -> bool | str | Mapping[str, Any]:
            said = await result_of(approver, approval)
            edit = said if isinstance(said, Mapping) else None
            why_not = said if isinstance(said, str) else None
            self._questions.append(Question(approval, said is True or edit is not None, why_not, edit))
            return edit if edit is not None else why_not if why_not is not None else said is True

        return ask

    def result(self, details: dict[str, Any], plans: list[str], error: RunError | None) -> PlanResult:
        used = details.get("usage", {})
        usage = Usage(
            used.get("modelCalls", 0),
            used.get("toolCalls", 0),
            used.get("inputTokens", 0),
            used.get("outputTokens", 0),
            used.get("usd"),
        )
        failed = details.get("error", {})
        refused = list(details.get("refusedCalls", []))
        if "refused" in failed:
            refused.append(failed["refused"])
        label = failed.get("label") if failed else details.get("label")
        return PlanResult(
            answer=details.get("result"),
            label=label,
            usage=usage,
            refused=refused,
            questions=list(self._questions),
            calls=list(self._calls.values()),
            run=details["run"],
            error=error,
            plans=plans,
            told=[_told(t) for t in details.get("replans", [])],
            bits=details.get("bits", 0.0),
            details=details,
        )


def plan(
    request: str,
    *,
    tools: PlanTools = (),
    policy: Policy | None = None,
    planner: str | Planner | None = None,
    quarantine: str | Quarantine | None = None,
    approver: Approver | None = None,
    plan: str | None = None,
    config: Path | None = None,
    replan: int | None = None,
    replan_errors: int | None = None,
    max_rounds: int | None = None,
    run_refused: bool = False,
    unpinned: bool = False,
    python_tools: bool = False,
) -> PlanRun:
    """A plan for a request, written by a planner and checked before it runs.

    `tools` are functions and `Tool`s; a text is what `--tools` of the command line takes. Annotations, defaults and docstrings are their signatures.
    `policy` says what they do and what may reach them: the path of a policy file, its text, or its tables as a mapping; without it, that of
    the settings. `planner` writes the plan: a model's name, or a function from the prompt to a text. It is asked up to `replan` times again (2)
    if the plan has mistakes or a call that is refused every time, and up to `replan_errors` times (0) after a run that ended with an error: it
    is told the code and the line of the error then, and which calls of the plan were made that may have changed something, as far as trusted
    data decided them; nothing else. `plan` is one that is there already. `quarantine` answers `ask` of the plan: a
    model's name, or a function from the prompt and the JSON Schema of the answer to data. `approver` is asked about calls that want approval.
    `config` names the settings; without it they are the nearest `entail.toml`. `unpinned` lets the planner see what MCP servers say of tools that
    nobody has approved; `python_tools` is consent to run the functions of Python files that `tools` names.

    This blocks until the planner has answered. Raises `Error` if a tool or the policy can't be used. A plan that can't run is no exception
    here: see `PlanRun.errors`.
    """
    functions, sources = _parted(tools)
    path = None if config is None else os.fspath(config)
    setup = {
        "request": request,
        "tools": [_declared(t) for t in functions],
        "sources": sources,
        "unpinned": unpinned,
        "python_tools": python_tools,
        **_policy(policy),
        "replan": replan,
        "replan_errors": replan_errors,
        "max_rounds": max_rounds,
        "run_refused": run_refused,
    }
    with native():
        exchange = _entail.Planning(path, json.dumps({k: v for k, v in setup.items() if v is not None}))
    feedback: list[list[tuple[int, str]]] = []
    if plan is not None:
        told, program = exchange.plan(plan)
    else:
        prompt = exchange.prompt()
        while True:
            told, program = exchange.reply(_written(planner, prompt, config))
            step = json.loads(told)
            if "prompt" not in step:
                break
            prompt = step["prompt"]
            feedback.append([(line, what) for line, what in step["findings"]])
    how = _How(functions, _answering(quarantine), approver, config, python_tools)
    return PlanRun(json.loads(told), program, feedback, how, exchange, planner)


def _parted(tools: PlanTools) -> tuple[list[Tool], list[str]]:
    """Functions, and what names files or servers."""
    if isinstance(tools, str):
        return [], [tools]
    if isinstance(tools, Mapping):
        return tools_of(tools), []
    functions: list[Tool] = []
    files: list[str] = []
    for given in tools:
        if isinstance(given, str):
            files.append(given)
        else:
            functions.append(given if isinstance(given, Tool) else tool(given))
    return functions, files


def _declared(tool: Tool) -> dict[str, Any]:
    if tool.takes is None:
        message = f"nothing says which arguments the tool `{tool.name}` takes"
        raise raised({"code": "usage", "message": message, "help": "name its parameters, or give `takes` of `entail.Tool`"})
    about = tool.description or inspect.getdoc(tool.function) or ""
    return {"name": tool.name, "description": about, "takes": tool.takes, "gives": tool.gives}


def _policy(policy: Policy | None) -> dict[str, Any]:
    if policy is None:
        return {}
    path, text = policy_arguments(policy)
    return {"policy_text": text} if path is None else {"policy": path}


def _text(written: object) -> str:
    """The text of a planner that is a function."""
    if not isinstance(written, str):
        message = f"the planner gave {type(written).__name__}, not a text"
        raise raised({"code": "usage", "message": message})
    return written


def _question(prompt: str, config: Path | None) -> Program:
    """A program that asks a model for a plan."""
    with native():
        return Program(_entail.Planning.question(None if config is None else os.fspath(config), prompt))


def _written(planner: str | Planner | None, prompt: str, config: Path | None) -> str:
    """What a planner writes."""
    if callable(planner):
        written = planner(prompt)
        if inspect.isawaitable(written):
            written = finished(written)
        return _text(written)
    program = _question(prompt, config)
    return str(finished(program.run(model=planner, config=config)))


async def _written_here(planner: str | Planner | None, prompt: str, config: Path | None) -> str:
    """What a planner writes, where a loop runs."""
    if callable(planner):
        written = await result_of(planner, prompt)
        return _text(written)
    program = _question(prompt, config)
    return str(await program.run(model=planner, config=config))


def _answering(quarantine: str | Quarantine | None) -> str | Model | None:
    return _quarantined(quarantine) if callable(quarantine) else quarantine


def _quarantined(quarantine: Quarantine) -> Callable[[Call], Coroutine[Any, Any, Any]]:
    """A function that answers `ask`, as a model."""

    async def answer(call: Call) -> Any:
        # A question about a reply that did not fit is the same question.
        prompt = next((m["content"] for m in call.messages if m["role"] == "user"), call.text)
        schema = call.schema or {}
        said = await result_of(quarantine, prompt, schema)
        if isinstance(said, Reply):
            return replace(said, reply=_reply(said.reply, schema))
        return _reply(said, schema)

    answer.__name__ = getattr(quarantine, "__name__", "quarantine")
    return answer


def _reply(said: Any, schema: Schema) -> str:
    """Data as the reply of a model. A text is data where the type admits one, and JSON elsewhere."""
    if isinstance(said, str) and not _admits_text(schema):
        return said
    return json.dumps(as_json(said), allow_nan=False)


def _admits_text(schema: Schema) -> bool:
    options = schema.get("anyOf") or schema.get("oneOf") or []
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    kinds = schema.get("type", [])
    return (
        not schema
        or "string" in ([kinds] if isinstance(kinds, str) else kinds)
        or any(isinstance(v, str) for v in values)
        or any(_admits_text(o) for o in options)
    )


def _as_run(tool: Tool) -> Tool:
    """The tool for a run: an argument that the plan leaves out has its default. Its schemas were declared."""
    try:
        parameters = inspect.signature(tool.function).parameters
    except (TypeError, ValueError):
        return replace(tool, takes=None, gives=None)
    empty = inspect.Parameter.empty
    defaults = {n for n, p in parameters.items() if p.default is not empty and p.default is not None}
    function = tool.function

    def named(args: dict[str, Any]) -> dict[str, Any]:
        return arguments(function, {n: v for n, v in args.items() if v is not None or n not in defaults})

    async def call_here(**args: Any) -> Any:
        return await function(**named(args))

    def call(**args: Any) -> Any:
        return function(**named(args))

    return replace(tool, function=call_here if is_coroutine(function) else call, takes=None, gives=None)


def _told(told: dict[str, Any]) -> ToldError:
    made = [(call["line"], call["tool"]) for call in told["made"]]
    return ToldError(told["run"], told["code"], told["line"], made, told["bits"])


def _flow(told: dict[str, Any]) -> Flow:
    return Flow(
        sink=told["sink"],
        name=told["name"],
        verdict=told["verdict"],
        line=told["line"],
        asks=told["asks"],
        why=told.get("why"),
        help=told.get("help"),
        details=told,
    )


__all__ = ["Flow", "PlanResult", "PlanRun", "ProgramError", "Question", "ToldError", "ToolCalled", "plan"]
