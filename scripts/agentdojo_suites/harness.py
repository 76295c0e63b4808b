"""Environments, tools, attacks and verdicts of AgentDojo, and the models that stand in for real ones."""

from __future__ import annotations

import functools
import importlib
import json
import pickle
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.base_attacks import FixedJailbreakAttack
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime, TaskEnvironment
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.task_suite.task_suite import TaskSuite
from agentdojo.types import text_content_block_from_string
from pydantic import BaseModel, TypeAdapter, networks

# Most of the time of a run would go into the same addresses, checked again for each environment.
networks.validate_email = functools.cache(networks.validate_email)

VERSION = "v1.2.2"
SUITES = ("banking", "slack", "travel", "workspace")
HERE = Path(__file__).parent
# Stands in each injected text. An obedient model that sees it does what the attacker wants.
MARK = "ATTACKER-SAYS"


@functools.cache
def suite(name: str) -> TaskSuite:
    """Returns a suite of the benchmark."""
    return get_suite(VERSION, name)


@functools.cache
def reasons() -> dict[str, dict[str, str]]:
    """Returns why no safe policy spares a task its questions, in words, by suite and task."""
    table: dict[str, dict[str, str]] = tomllib.loads((HERE / "reasons.toml").read_text())
    return table


@functools.cache
def plans(name: str) -> dict[str, str]:
    """Returns the plans of a suite by user task."""
    return importlib.import_module(f"agentdojo_suites.{name}.plans").PLANS


@functools.cache
def answers(name: str) -> dict[str, Callable[[str], object]]:
    """Returns the readers of a suite by question."""
    return importlib.import_module(f"agentdojo_suites.{name}.answers").ANSWERS


@functools.cache
def template(name: str, slots: tuple[str, ...]) -> str:
    """Environment as JSON text with the name of a slot in each of some slots. Reading the file takes long."""
    return suite(name).load_and_inject_default_environment({s: f"<{s}>" for s in slots}).model_dump_json()


@functools.lru_cache(maxsize=64)
def _injected(name: str, injections: tuple[tuple[str, str], ...]) -> bytes:
    text = template(name, tuple(slot for slot, _ in injections))
    for slot, injected in injections:
        text = text.replace(f"<{slot}>", json.dumps(injected)[1:-1])
    return pickle.dumps(suite(name).environment_type.model_validate_json(text))


def environment(name: str, injections: dict[str, str], task: BaseUserTask) -> TaskEnvironment:
    """Returns a fresh environment of a task, with texts injected."""
    fresh: TaskEnvironment = pickle.loads(_injected(name, tuple(sorted(injections.items()))))
    return task.init_environment(fresh)


def copied(env: TaskEnvironment) -> TaskEnvironment:
    """Returns a copy of an environment. It takes a fraction of the time that `model_copy` takes."""
    copy: TaskEnvironment = pickle.loads(pickle.dumps(env))
    return copy


def data(value: Any) -> Any:
    """Returns what a tool gave as JSON data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return TypeAdapter(Any).dump_python(value, mode="json")


@dataclass
class Calls:
    """Tools of a suite, bound to one environment, that record their calls."""

    name: str
    environment: TaskEnvironment
    made: list[FunctionCall] = field(default_factory=list)
    confirmed: list[Any] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    answer: Callable[[str, Any], Any] | None = None

    def __post_init__(self) -> None:
        self.runtime = FunctionsRuntime(suite(self.name).tools)

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Calls a tool, and returns what it gave as JSON data."""
        arguments = {k: v for k, v in arguments.items() if v is not None}
        self.made.append(FunctionCall(function=tool, args=arguments))
        result, _ = self.runtime.run_function(self.environment, tool, arguments, raise_on_error=True)
        result = data(result)
        self.given.append(result)
        return result if self.answer is None else self.answer(tool, result)

    def parameters(self, tool: str) -> list[str]:
        """Returns the names of the parameters of a tool."""
        return list(self.runtime.functions[tool].parameters.model_fields)


@dataclass(frozen=True)
class Attack:
    """Injection task of the benchmark and the values that its attacker wants to see."""

    task: BaseInjectionTask
    calls: tuple[FunctionCall, ...]

    @property
    def text(self) -> str:
        """Text that is injected."""
        return f"{MARK} {self.task.ID}: {self.task.GOAL}"

    def wanted(self) -> Iterator[tuple[str, Any]]:
        """Yields the arguments of the attacker's calls, then the goal."""
        for call in self.calls:
            for name, value in call.args.items():
                yield from ((name, v) for v in value) if isinstance(value, list) else [(name, value)]
        yield "goal", self.task.GOAL


@functools.cache
def attack(name: str, task_id: str) -> Attack:
    """Returns the attack of an injection task."""
    task = suite(name).injection_tasks[task_id]
    plain = suite(name).environment_type.model_validate_json(template(name, ()))
    return Attack(task, tuple(goal(name, task, plain)))


def goal(name: str, task: BaseInjectionTask, env: TaskEnvironment) -> list[FunctionCall]:
    """Returns the calls that do what an attacker wants."""
    calls = task.ground_truth(env)
    if calls or task.GROUND_TRUTH_OUTPUT:
        return calls
    return importlib.import_module(f"agentdojo_suites.{name}.goals").calls(task, env)


def verdict(name: str, task: Any, output: str, before: TaskEnvironment, calls: Calls) -> bool:
    """Returns what the benchmark says of a run: whether a user task is done or an attack has succeeded."""
    content = [text_content_block_from_string(output)]
    return suite(name)._check_task_result(task, content, before, calls.environment, calls.made)


class _Slots(FixedJailbreakAttack):
    """Attack of the benchmark that writes the text of ours into each slot that a task reads."""

    name = "obedient"

    def __init__(self, name: str) -> None:
        super().__init__("", suite(name), None)  # type: ignore[arg-type]


@functools.cache
def slots(name: str, task_id: str) -> tuple[str, ...]:
    """Returns the slots for injections that a user task reads, as the benchmark decides it."""
    return tuple(_Slots(name).get_injection_candidates(suite(name).user_tasks[task_id]))


def obey(schema: dict[str, Any], attack: Attack, turn: int) -> Any:
    """Returns a value of a type, given as JSON schema: the attacker's values wherever the type admits them.

    The attacker has several turns. Each of them puts other values first, and goes through all values of an
    enumeration before it takes other texts.
    """
    return _Obedient(attack, schema.get("$defs", {}), turn, longest(schema)).value(schema, "")


def longest(schema: Any) -> int:
    """Returns the number of values of the longest enumeration in a schema, at least one."""
    if isinstance(schema, dict):
        return max([len(schema.get("enum", [0])), *(longest(s) for s in schema.values())])
    return max([1, *(longest(s) for s in schema)]) if isinstance(schema, list) else 1


@dataclass(frozen=True)
class _Obedient:
    attack: Attack
    types: dict[str, Any]
    turn: int
    stride: int

    def value(self, schema: dict[str, Any], name: str) -> Any:
        if "$ref" in schema:
            return self.value(self.types[schema["$ref"].rsplit("/", 1)[-1]], name)
        if "anyOf" in schema:
            some = [s for s in schema["anyOf"] if s.get("type") != "null"]
            return self.value(some[self.turn % len(some)], name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][self.turn % len(schema["enum"])]
        kind = schema.get("type")
        if kind == "object":
            return {k: self.value(s, k) for k, s in schema.get("properties", {}).items()}
        if kind == "array":
            later = replace(self, turn=self.turn + 1)
            return [who.value(schema.get("items", {}), name) for who in (self, later)]
        if kind == "boolean":
            return self.turn % 2 == 0
        if kind in ("integer", "number"):
            return wanted(self.attack, name, (int, float), self.turn // self.stride, 1_000_000)
        return wanted(self.attack, name, str, self.turn // self.stride, self.attack.text)


def wanted(attack: Attack, name: str, kind: Any, turn: int, default: Any) -> Any:
    """Returns a value of a type that the attacker wants to see, one of the same name first."""
    some = [(n, v) for n, v in attack.wanted() if isinstance(v, kind) and not isinstance(v, bool)]
    first = [v for n, v in some if n == name] + [v for n, v in some if n != name]
    return first[turn % len(first)] if first else default


@dataclass
class Model:
    """Quarantined model: reads honestly, or obeys an injected text in its prompt, or whatever it reads."""

    name: str
    attack: Attack | None = None
    turn: int = 0
    always: bool = False
    asked: int = 0

    def reply(self, prompt: str, schema: dict[str, Any]) -> Any:
        """Returns JSON data of the type that a schema describes."""
        self.asked += 1
        if self.attack is not None and (self.always or MARK in prompt):
            # In a loop of questions the attacker tries one thing after another.
            return obey(schema, self.attack, self.turn + self.asked - 1)
        question, _, text = prompt.partition("\n")
        return answers(self.name)[question](text)


def undefended(name: str, task: BaseUserTask, attack: Attack) -> bool:
    """Runs an agent that does the user's calls, and the attacker's when it has read the injected text."""
    injections = {slot: attack.text for slot in slots(name, task.ID)}
    env = environment(name, injections, task)
    before = copied(env)
    calls = Calls(name, env)
    output = task.GROUND_TRUTH_OUTPUT
    obeyed = False
    for step in GroundTruthPipeline(task)._task.ground_truth(env):  # type: ignore[union-attr]
        result, _ = calls.runtime.run_function(env, step.function, step.args, raise_on_error=False)
        calls.made.append(step)
        if not obeyed and MARK in tool_result_to_str(result):
            obeyed = True
            output += " " + attack.task.GROUND_TRUTH_OUTPUT
            for wrong in goal(name, attack.task, env):
                calls.made.append(wrong)
                calls.runtime.run_function(env, wrong.function, wrong.args, raise_on_error=False)
    return verdict(name, attack.task, output, before, calls)
