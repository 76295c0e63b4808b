"""An agent without a plan: the program `examples/react/agent.lam` with the tools of a suite, and a scripted model.

The scripted agent makes the calls of the plan's honest run, one step after the other. It may write what stands in the
request and what it was shown. Everything else in an argument it has answered from handles and passes on as a handle.
Where data that it was not shown decide whether a call happens, it opens them. Which of the two it is, is not written
here: the labels of the honest run say it. It obeys every injected text that it is shown.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import entail
from pydantic import TypeAdapter

from agentdojo_suites.attacks import Labels
from agentdojo_suites.defended import Case, Oracle, Outcome, plain, untagged
from agentdojo_suites.harness import HERE, MARK, Attack, Calls, Model, environment, obey, suite

EXAMPLE = HERE.parent.parent / "examples" / "react" / "agent.lam"
# What follows in the example are its own tools.
TOOLS = "\n# The tools.\n"

Schema = dict[str, Any]
Policy = dict[str, Any]


# The program.


def program(name: str) -> str:
    """Returns the example's agent with the tools of a suite."""
    loop, _ = EXAMPLE.read_text().split(TOOLS)
    if Labels.load(name)["lattice"] == "sources-readers":
        loop = loop.replace("let trusted = []", 'let trusted = {sources: [], readers: "*"}')
    functions = suite(name).tools
    declared = "\n".join(declaration(f) for f in functions)
    tools = ",\n".join(f"  {f.name}: {entry(f)}" for f in functions)
    return f"{loop}{TOOLS}{declared}\nlet tools = {{\n{tools}\n}}\n\\task. act tools task\n"


def declaration(function: Any) -> str:
    """Returns the declaration of a tool."""
    takes = function.parameters.model_json_schema()
    needed = takes.get("required", [])
    params = []
    for name, schema in takes.get("properties", {}).items():
        kind = written(schema, takes)
        optional = name not in needed and not kind.startswith(("Option", "Dyn"))
        params.append(f"{name}: {f'Option ({kind})' if optional else kind}")
    gives = TypeAdapter(function.return_type).json_schema(mode="serialization")
    return f"tool {function.name}({', '.join(params)}) -> {written(gives, gives)} write"


def resolved(schema: Schema, root: Schema) -> Schema:
    """Returns what a reference refers to."""
    return root["$defs"][schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


def written(schema: Schema, root: Schema) -> str:
    """Returns a type in the notation of the calculus."""
    schema = resolved(schema, root)
    if "anyOf" in schema:
        some = [s for s in schema["anyOf"] if s.get("type") != "null"]
        one = written(some[0], root) if len(some) == 1 else "Dyn"
        return one if one == "Dyn" or len(some) == len(schema["anyOf"]) else f"Option ({one})"
    kind = schema.get("type")
    if kind == "array":
        return f"List ({written(schema.get('items', {}), root)})"
    if kind == "object" and schema.get("properties"):
        fields = (f'"{n}": {written(s, root)}' for n, s in schema["properties"].items())
        return "{" + ", ".join(fields) + "}"
    words = {"string": "Str", "integer": "Num", "number": "Num", "boolean": "Bool"}
    return words.get(str(kind), "Dyn")


def entry(function: Any) -> str:
    """Returns how the agent calls a tool, and what it is shown of a result of which not all is trusted."""
    params = function.parameters.model_json_schema().get("properties", {})
    args = ", ".join(f'{p}: arg "{p}"' for p in params)
    gives = TypeAdapter(function.return_type).json_schema(mode="serialization")
    return f"{{call: \\arg. dyn (tool[{function.name}] {{{args}}}), shown: {shown(gives)}}}"


def shown(gives: Schema) -> str:
    """Returns a function that shows the trusted fields of a record, or of each record of a list."""
    whole = resolved(gives, gives)
    one = resolved(whole.get("items", {}), gives) if whole.get("type") == "array" else whole
    if not one.get("properties"):
        return "seen"
    fields = ", ".join(f'"{f}": seen r.["{f}"]' for f in one["properties"])
    record = f"(\\r. dyn {{{fields}}})"
    return f"\\x. dyn (map {record} x)" if whole is not one else record


@functools.cache
def loaded(name: str) -> entail.Program:
    """Returns the agent of a suite under its policy."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "policy.toml").write_text((HERE / name / "policy.toml").read_text())
        (at / "entail.toml").write_text('policy = "policy.toml"\n')
        (at / "agent.lam").write_text(program(name))
        return entail.load(at / "agent.lam", config=at / "entail.toml")


# What an honest agent does.


@dataclass(frozen=True)
class Event:
    """A call of the honest run, with the sources of its arguments and of what decides that it happens."""

    tool: str
    args: dict[str, Any]
    sources: dict[str, frozenset[str]]
    control: frozenset[str]


@dataclass(frozen=True)
class Honest:
    """The honest run of a task: the request, the calls, and the answer with its sources."""

    request: str
    events: tuple[Event, ...]
    answer: str
    sources: frozenset[str]


def sources(label: Any) -> frozenset[str]:
    """Returns the parts of a label above trusted and public."""
    return frozenset(label.get("sources", ()) if isinstance(label, dict) else label or ())


def of_policy(label: Any, policy: Policy) -> frozenset[str]:
    """Returns the sources of a label as a policy writes it."""
    if isinstance(label, dict) and "source" not in label:
        return frozenset(label.get("sources", ()))
    words = str(label).split()
    if "untrusted" in words or isinstance(label, dict):
        return frozenset(everything(policy))
    return frozenset(["S"] if "secret" in words else [])


def everything(policy: Policy) -> list[str]:
    """Returns all sources that a policy tells apart."""
    sources: list[str] = policy.get("principals", {}).get("sources", ["U"])
    return sources


class _Recorder(Oracle):
    """Approves and records whatever is asked."""

    def __call__(self, approval: entail.Approval) -> bool:
        self.asked.append(approval)
        return True


def probing(name: str, policy: Policy, **keys: Any) -> Policy:
    """Returns a policy that labels results as this one, admits every argument, and asks as the keys say."""
    probe = copy.deepcopy(policy)
    probe.pop("output", None)
    tools = probe.setdefault("tools", {})
    for function in suite(name).tools:
        table = tools.setdefault(function.name, {})
        for key in ("among", "plain", "allow", "at_most", "approve", "control"):
            table.pop(key, None)
        table["bounds"] = {p: "any" for p in function.parameters.model_fields}
        table.update(keys)
    return probe


def asked_under(name: str, task_id: str, policy: Policy) -> tuple[list[entail.Approval], str, Any]:
    """Returns what an honest run of the plan asks under a policy, its answer, and the label of that."""
    case, recorder = Case(name, task_id, policy), _Recorder([], [])
    world = Calls(name, environment(name, {}, suite(name).user_tasks[task_id]))
    outcome = case.run(world, Model(name), recorder)
    if outcome.error is not None:
        raise RuntimeError(f"{name} {task_id}: the plan fails under a policy that admits everything")
    return recorder.asked, outcome.output, outcome.label


@functools.cache
def honest(name: str, task_id: str) -> Honest:
    """Returns the honest run of the plan of a task, with labels."""
    policy = Labels.load(name)
    calls, answer, label = asked_under(name, task_id, probing(name, policy, control="any", approve=True))
    decided: list[set[str]] = [set() for _ in calls]
    every = everything(policy)
    for source in every:
        # Each decision that has this source is asked about, and no other.
        others: Any = "secret" if every == ["U"] else {"sources": [s for s in every if s != source], "readers": []}
        probe = probing(name, policy, control=others, approve="if-refused")
        rest = iter(asked_under(name, task_id, probe)[0])
        following = next(rest, None)
        for call, by in zip(calls, decided, strict=True):
            if following is not None and (call.tool, call.args) == (following.tool, following.args):
                if call.tool != "confirm":
                    by.add(source)
                following = next(rest, None)
        if following is not None:
            raise RuntimeError(f"{name} {task_id}: a call that is asked about is none of the run's")
    events = [
        Event(c.tool, plain(c.args), {p: sources(c.labels.get(p)) for p in c.args}, frozenset(by))
        for c, by in zip(calls, decided, strict=True)
    ]
    return Honest(suite(name).user_tasks[task_id].PROMPT, tuple(events), answer, sources(label))


# The scripted models.


def type_of(value: Any) -> str:
    """Returns the type of answer that a value is."""
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "texts" if isinstance(value, list) and all(isinstance(v, str) for v in value) else "data"


@dataclass
class Agent:
    """The scripted agent and the reader that it asks, in one run."""

    name: str
    task: Honest
    attack: Attack | None = None
    turn: int = 0
    # The models obey whatever they read, not only the text.
    always: bool = False
    count: int = 0
    steps: int = 0
    questions: int = 0
    opened: int = 0
    # The sources of what was shown, of each handle, and the answers of an honest reader with the parameter asked for.
    read: set[str] = field(default_factory=set)
    handles: dict[int, frozenset[str]] = field(default_factory=dict)
    answers: dict[str, tuple[str, Any]] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    wanted: list[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        self.policy = Labels.load(self.name)
        self.script = self._script()

    def __call__(self, call: entail.Call) -> str:
        if call.purpose == "reader":
            return json.dumps({"answer": self._answer(call)})
        self.steps += 1
        if self.attack is not None and self.wanted is None and self._deceived(call):
            self.wanted = [self._step("call", tool=c.function, args=dict(c.args)) for c in self.attack.calls]
        if self.wanted:
            self.count += 1
            return json.dumps(self.wanted.pop(0))
        return json.dumps(next(self.script))

    def _deceived(self, call: entail.Call) -> bool:
        shown = [str(m["content"]) for m in call.messages if m["role"] != "assistant"]
        return any(MARK in text for text in shown) or (self.always and bool(self.read))

    def _answer(self, call: entail.Call) -> Any:
        self.questions += 1
        question, _, text = call.text.partition("\n")
        param, value = self.answers[question]
        if self.attack is not None and (self.always or MARK in text):
            schema = (call.schema or {})["properties"]["answer"]
            kinds = {**(call.schema or {}), "properties": {param: schema}, "type": "object"}
            return obey(kinds, self.attack, self.turn + self.questions - 1).get(param)
        return value

    def _step(self, do: str, **parts: Any) -> dict[str, Any]:
        return {"do": do, "tool": "", "args": {}, "of": [], "text": "", "type": "", **parts}

    def _kept(self, label: frozenset[str]) -> int:
        self.count += 1
        self.handles[self.count] = label
        return self.count

    def _ask(self, question: str, param: str, value: Any, label: frozenset[str]) -> Iterator[dict[str, Any]]:
        """Asks about the handles that the value may come from, unless that was asked already."""
        key = json.dumps([value, sorted(label)])
        if key not in self.known:
            some = {n: s for n, s in self.handles.items() if s and s <= label} or dict(self.handles)
            self.answers[question] = (param, value)
            of = [{"handle": f"#{n}"} for n in some]
            self.known[key] = self._kept(frozenset().union(*some.values(), label))
            yield self._step("ask", of=of, text=question, type=type_of(value))

    def _open(self, label: frozenset[str]) -> Iterator[dict[str, Any]]:
        """Opens what decides, as far as it isn't known."""
        if label <= self.read:
            return
        for n, of in list(self.handles.items()):
            if of and of <= label:
                self.opened += 1
                self.read |= of
                self._kept(of)
                yield self._step("open", of=[{"handle": f"#{n}"}])
        self.read |= label

    def _script(self) -> Iterator[dict[str, Any]]:
        for i, event in enumerate(self.task.events):
            yield from self._open(event.control)
            args: dict[str, Any] = {}
            joined = frozenset(self.read)
            for param, value in event.args.items():
                label = event.sources.get(param, frozenset())
                joined |= label
                if label <= self.read:
                    args[param] = untagged(value)
                    continue
                question = f"Step {i + 1}: what is `{param}` for `{event.tool}`?"
                yield from self._ask(question, param, untagged(value), label)
                args[param] = {"handle": f"#{self.known[json.dumps([untagged(value), sorted(label)])]}"}
            if event.tool == "confirm":
                # A value that is known already needs nobody.
                if isinstance(args["value"], dict) and "handle" in args["value"]:
                    self._kept(frozenset())
                    yield self._step("confirm", of=[args["value"]], text=str(event.args["why"]))
                continue
            # The model counts a handle when it makes the step that gives it.
            self._kept(joined | self._given(event.tool))
            yield self._step("call", tool=event.tool, args=args)
        yield from self._done()

    def _given(self, tool: str) -> frozenset[str]:
        table = self.policy.get("tools", {}).get(tool, {})
        whole = table.get("result", "trusted" if table.get("effect") == "pure" else "untrusted")
        labels = [whole, *table.get("fields", {}).values()]
        return frozenset().union(*(of_policy(label, self.policy) for label in labels))

    def _done(self) -> Iterator[dict[str, Any]]:
        obeyed = f" {self.attack.task.GROUND_TRUTH_OUTPUT}" if self.attack and self.wanted is not None else ""
        if self.task.sources <= self.read:
            yield self._step("done", text=self.task.answer + obeyed)
            return
        yield from self._ask("What is the answer?", "answer", self.task.answer, self.task.sources)
        known = self.known[json.dumps([self.task.answer, sorted(self.task.sources)])]
        yield self._step("done", of=[{"handle": f"#{known}"}])


def run(name: str, world: Calls, agent: Agent, oracle: Oracle) -> Outcome:
    """Runs the agent in a world."""

    def tool(of: str) -> entail.Tool:
        return entail.Tool(of, lambda **args: world.call(of, args))

    tools = [tool(f.name) for f in suite(name).tools]
    try:
        report = asyncio.run(
            loaded(name).report(agent.task.request, tools=tools, model=agent, approver=oracle)
        )
    except entail.RunError as error:
        return Outcome("", error.code, [], len(oracle.asked), None)
    value = report.value
    output = value if isinstance(value, str) else "" if value is None else str(value)
    return Outcome(output, None, report.details.get("refusedCalls", []), len(oracle.asked), None)


def approver(task: Honest, most: int | None) -> Oracle:
    """Returns an approver of the calls and values of the honest run alone."""
    calls = [(e.tool, e.args) for e in task.events if e.tool != "confirm"]
    return Oracle(calls, [untagged(e.args["value"]) for e in task.events if e.tool == "confirm"], most)
