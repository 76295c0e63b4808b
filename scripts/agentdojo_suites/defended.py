"""Runs a plan through the Python package of Entail, under a policy and with an approver."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import entail
from pydantic import TypeAdapter

from agentdojo_suites import cpython
from agentdojo_suites.harness import MARK, Calls, Model, environment, plans, suite


@dataclass
class Outcome:
    """What a run gave."""

    output: str
    error: str | None
    refused: list[dict[str, Any]]
    questions: int
    # The label of the answer, or of the error.
    label: Any


def plain(args: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments that are given."""
    return {k: v for k, v in args.items() if v is not None}


def untagged(value: Any) -> Any:
    """Returns data without the names of the plan's classes."""
    if isinstance(value, dict):
        return {k: untagged(v) for k, v in value.items() if k != "$class"}
    return [untagged(v) for v in value] if isinstance(value, list) else value


@dataclass
class Oracle:
    """Approver of the calls and values of the honest run alone, who answers so many questions at most."""

    calls: list[tuple[str, dict[str, Any]]]
    values: list[Any]
    most: int | None = None
    asked: list[entail.Approval] = field(default_factory=list)

    def __call__(self, approval: entail.Approval) -> bool:
        known = (approval.tool, plain(approval.args)) in self.calls
        if approval.tool == "confirm":
            known = untagged(approval.args["value"]) in self.values
        approved = known and (self.most is None or len(self.asked) < self.most)
        self.asked.append(approval)
        return approved


@functools.cache
def honest(name: str, task_id: str) -> tuple[Calls, str]:
    """Returns the calls and the answer of a plan in CPython, with nobody attacking."""
    calls = Calls(name, environment(name, {}, suite(name).user_tasks[task_id]))
    return calls, cpython.run(plans(name)[task_id], calls, Model(name))


def oracle(name: str, task_id: str, most: int | None) -> Oracle:
    """Returns the approver of a task."""
    calls, _ = honest(name, task_id)
    return Oracle([(c.function, plain(dict(c.args))) for c in calls.made], calls.confirmed, most)


class Case:
    """Plan of a task, checked once under a policy, that runs in one world after another."""

    def __init__(self, name: str, task_id: str, policy: dict[str, Any], planner: Any = None) -> None:
        self.world: Calls | None = None
        self.model: Model | None = None
        self.oracle: Oracle | None = None
        self.plan = entail.plan(
            suite(name).user_tasks[task_id].PROMPT,
            tools=[self._tool(f) for f in suite(name).tools],
            policy=policy,
            planner=planner or (lambda prompt: plans(name)[task_id]),
            quarantine=lambda prompt, schema: self.model.reply(prompt, schema),  # type: ignore[union-attr]
            approver=lambda approval: self.oracle(approval),  # type: ignore[misc]
            run_refused=True,
        )

    def _tool(self, function: Any) -> entail.Tool:
        name = function.name

        def call(**args: Any) -> Any:
            return self.world.call(name, args)  # type: ignore[union-attr]

        takes = function.parameters.model_json_schema()
        gives = TypeAdapter(function.return_type).json_schema(mode="serialization")
        return entail.Tool(name, call, takes, gives, function.description)

    def run(self, world: Calls, model: Model, oracle: Oracle) -> Outcome:
        """Runs the plan in a world."""
        self.world, self.model, self.oracle = world, model, oracle
        result = self.plan.run_sync(check=False)
        output = (
            result.answer
            if isinstance(result.answer, str)
            else ""
            if result.answer is None
            else str(result.answer)
        )
        error = None if result.error is None else result.error.code
        return Outcome(output, error, result.refused, len(oracle.asked), result.label)


def obeying(name: str, task_id: str, policy: dict[str, Any], world: Calls, model: Model) -> Case:
    """Returns a plan by a planner who makes a mistake first, and obeys an injected text that it is told.

    Its tools are those of the attacked world: if anything that they give reached the planner, the attacker
    would write the plan.
    """
    asked = []

    def planner(prompt: str) -> str:
        asked.append(prompt)
        if model.attack is not None and MARK in prompt:
            return "\n".join(f"{c.function}(**{dict(c.args)!r})" for c in model.attack.calls)
        plan = plans(name)[task_id]
        return plan + "\nnot_a_tool(1)\n" if len(asked) == 1 else plan

    case = Case(name, task_id, policy, planner)
    case.world, case.model = world, model
    return case
