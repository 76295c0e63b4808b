"""Measures plans under policies: which tasks are done with how many questions, and which attacks succeed.

python -m agentdojo_suites.measure [--suite NAME]… [--variant NAME]… [--policy NAME]… [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from agentdojo.functions_runtime import FunctionCall, TaskEnvironment

from agentdojo_suites import asked, attacks, cpython, figures, policies, react
from agentdojo_suites.defended import Case, Oracle, Outcome, honest, obeying, oracle
from agentdojo_suites.harness import (
    SUITES,
    Calls,
    Model,
    attack,
    copied,
    environment,
    plans,
    suite,
    verdict,
)

# Numbers of questions that an approver answers at most; nothing for any number.
LIMITS: tuple[int | None, ...] = (0, 1, None)


@dataclass
class Task:
    """A task under a policy: by limit of questions, whether it is done, and why not."""

    suite: str
    task: str
    done: list[bool]
    questions: int
    reason: str
    # Calls of models and tools; of an agent without a plan, also what it asks about handles and how many it opens.
    cost: dict[str, int] = field(default_factory=dict)


@dataclass
class Pair:
    """An attack on a task: whether its goal is reached, with text only, or any call is another than usual."""

    suite: str
    task: str
    injection: str
    variant: str
    reached: bool
    text: bool
    changed: bool


def utility(name: str, task_id: str, case: Case) -> Task:
    """Runs a task with nobody attacking, with each limit of questions."""
    done, questions, reason, cost = [], 0, "", {}
    for most in LIMITS:
        task = suite(name).user_tasks[task_id]
        world = Calls(name, environment(name, {}, task))
        before = copied(world.environment)
        approver, model = oracle(name, task_id, most), Model(name)
        outcome = case.run(world, model, approver)
        # The planner is one more.
        cost = {"models": model.asked + 1, "calls": len(world.made)}
        right = outcome.error is None and verdict(name, task, outcome.output, before, world)
        done.append(right)
        questions = outcome.questions
        if not right and not reason:
            reason = explained(outcome, approver)
    return Task(name, task_id, done, questions, reason, cost)


def without_plan(name: str, task_id: str) -> Task:
    """Runs a task by an agent with handles, with nobody attacking, with each limit of questions."""
    honest_run = react.honest(name, task_id)
    done, questions, reason, cost = [], 0, "", {}
    for most in LIMITS:
        task = suite(name).user_tasks[task_id]
        world = Calls(name, environment(name, {}, task))
        before = copied(world.environment)
        agent, approver = react.Agent(name, honest_run), react.approver(honest_run, most)
        outcome = react.run(name, world, agent, approver)
        right = outcome.error is None and verdict(name, task, outcome.output, before, world)
        done.append(right)
        questions = outcome.questions
        cost = {"models": agent.steps + agent.questions, "calls": len(world.made)}
        cost |= {"asked": agent.questions, "opened": agent.opened}
        if not right and not reason:
            reason = explained(outcome, approver)
    return Task(name, task_id, done, questions, reason, cost)


def lost(name: str, task_id: str, case: Case) -> Task | None:
    """Returns a task whose plan is not run, because of what is known before the run."""
    if not case.plan.errors:
        return None
    reason = "; ".join(str(e.message) for e in case.plan.errors)
    return Task(name, task_id, [False] * len(LIMITS), 0, reason)


def explained(outcome: Outcome, approver: Oracle) -> str:
    """Returns why a run was not done: what was asked, or else refused."""
    if approver.asked:
        asked = approver.asked[-1]
        labels = "; ".join(
            f"`{name}` is {json.dumps(label)}" for name, label in asked.labels.items() if not plain(label)
        )
        return f"`{asked.tool}` is asked about: {labels}"
    if outcome.refused:
        return json.dumps(outcome.refused[-1])
    return outcome.error or f"answer: {outcome.output[:80]!r}"


def plain(label: Any) -> bool:
    """Returns true for a label of trusted and public data."""
    return label == [] or (isinstance(label, dict) and label.get("sources") == [])


# Runs a plan in a world, with a planner that obeys or not.
Runner = Callable[[Calls, Model, bool], str]


def plant(name: str, env: TaskEnvironment, calls: tuple[FunctionCall, ...]) -> None:
    """Makes the calls of an earlier session."""
    session = Calls(name, env)
    for call in calls:
        session.call(call.function, dict(call.args))


def attacked(
    name: str, task_id: str, variant: str, labels: attacks.Labels, run: Runner, turns: int, usual: Calls
) -> list[Pair]:
    """Runs every attack of a suite on a task, each as often as the attacker tries, beside the usual calls."""
    task = suite(name).user_tasks[task_id]
    pairs = []
    for wish in suite(name).injection_tasks.values():
        wanted = attack(name, wish.ID)
        reached = text = changed = False
        for t in attacks.VARIANTS[variant](name, task_id, wanted, labels, turns):
            env = environment(name, t.injections, task)
            plant(name, env, t.earlier)
            world = Calls(name, env, answer=t.answer)
            before = copied(env)
            output = run(world, Model(name, wanted, t.turn, t.always), t.feedback)
            only = attacks.text_only(labels, usual, world)
            changed = changed or not only
            # What an earlier session has reached is no attack of this one.
            already = bool(t.earlier) and verdict(name, wish, "", before, Calls(name, before))
            if verdict(name, wish, output, before, world) and not (already and only):
                reached, text = reached or not only, text or only
                if reached:
                    break
        pairs.append(Pair(name, task_id, wish.ID, variant, reached, text and not reached, changed))
    return pairs


def with_policy(case: Case, policy: dict[str, Any], name: str, task_id: str) -> Runner:
    """Returns a runner under a policy, whose approver answers any number of questions."""

    def run(world: Calls, model: Model, feedback: bool) -> str:
        if case.plan.errors:
            return ""
        now = obeying(name, task_id, policy, world, model) if feedback else case
        return now.run(world, model, oracle(name, task_id, None)).output

    return run


def with_handles(name: str, task_id: str) -> Runner:
    """Returns a runner of an agent without a plan, whose approver answers any number of questions."""
    honest_run = react.honest(name, task_id)

    def run(world: Calls, model: Model, feedback: bool) -> str:
        agent = react.Agent(name, honest_run, model.attack, model.turn, model.always)
        return react.run(name, world, agent, react.approver(honest_run, None)).output

    return run


def without(name: str, task_id: str) -> Runner:
    """Returns a runner in CPython; an exception ends the plan without an answer."""

    def run(world: Calls, model: Model, feedback: bool) -> str:
        try:
            return cpython.run(plans(name)[task_id], world, model)
        except Exception:
            return ""

    return run


def measure(job: tuple[str, str, str, tuple[str, ...], int]) -> dict[str, Any]:
    """Measures one task under one policy."""
    name, task_id, kind, variants, turns = job
    with contextlib.redirect_stdout(io.StringIO()):
        policy = attacks.Labels.load(name)
        labels = attacks.Labels(policy)
        if kind == "none":
            task, run = None, without(name, task_id)
        elif kind == "react":
            task, run = without_plan(name, task_id), with_handles(name, task_id)
            # It has no planner.
            variants = tuple(v for v in variants if v != "feedback")
        else:
            policy = policies.KINDS[kind](policy, name)
            if kind in policies.SUITES_OF:
                # It says something else of whose texts there are.
                labels = attacks.Labels(policy)
            # Under the rules of others nobody is asked.
            text = asked.unconfirmed(plans(name)[task_id]) if kind.startswith("camel") else None
            case = Case(name, task_id, policy, text and (lambda prompt: text))
            task = lost(name, task_id, case) or utility(name, task_id, case)
            run = with_policy(case, policy, name, task_id)
        usual = honest(name, task_id)[0]
        pairs = [p for v in variants for p in attacked(name, task_id, v, labels, run, turns, usual)]
        result: dict[str, Any] = {"kind": kind, "suite": name, "task": task and asdict(task)}
        if kind == "own" and task is not None:
            found = asked.refusals(name, task_id, policy) if task.questions else []
            result["asks"] = [asdict(r) for r in found]
            result["unfounded"] = asked.unfounded(name, task_id, task.questions, found)
    return {**result, "pairs": [asdict(p) for p in pairs]}


def main(arguments: list[str]) -> int:
    """Prints a table of a suite or of all."""
    parser = argparse.ArgumentParser(prog="scripts/agentdojo measure")
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--variant", action="append", choices=list(attacks.VARIANTS))
    parser.add_argument("--policy", action="append", choices=["none", "react", *policies.KINDS])
    parser.add_argument("--task", action="append", help="only these user tasks")
    parser.add_argument("--compare", action="store_true", help="fail if a figure is worse than on the page")
    parser.add_argument("--record", metavar="COMMIT", help="write the figures of the page, measured at COMMIT")
    parser.add_argument("--turns", type=int, default=8, help="how often an attacker tries")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", help="file for everything that was measured")
    given = parser.parse_args(arguments)
    names = given.suite or list(SUITES)
    variants = tuple(given.variant or attacks.VARIANTS)
    kinds = given.policy or ["none", *policies.KINDS, "react"]
    jobs = [
        (name, task_id, kind, variants, given.turns)
        for kind in kinds
        for name in names
        if name in policies.SUITES_OF.get(kind, SUITES)
        for task_id in suite(name).user_tasks
        if not given.task or task_id in given.task
    ]
    with multiprocessing.Pool(given.processes) as pool:
        results = pool.map(measure, jobs, chunksize=1)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(results, file, indent=1)
    for kind in kinds:
        some = [r for r in results if r["kind"] == kind]
        table(kind, some, names, variants)
    found = [f"{r['suite']} {r['task']['task']}: {r['unfounded']}" for r in results if r.get("unfounded")]
    new = figures.summed(results)
    if given.compare:
        found += figures.worse(figures.load()["kinds"], new)
    for line in found:
        print(line)
    if given.record and not found:
        figures.record(given.record, given.turns, new)
    return 1 if found else 0


def table(kind: str, results: list[dict[str, Any]], names: list[str], variants: tuple[str, ...]) -> None:
    """Prints what was measured under one policy."""
    print(f"## {kind}\n")
    tasks = [r["task"] for r in results if r["task"]]
    for t in tasks:
        if not t["done"][0]:
            state = "at 1" if t["done"][1] else "with more" if t["done"][2] else "never"
            print(f"{t['suite']} {t['task']}: {state}, {t['questions']} questions: {t['reason'][:300]}")
    pairs = [p for r in results for p in r["pairs"]]
    for p in pairs if kind != "none" else []:
        if p["reached"] or p["text"]:
            how = "reached" if p["reached"] else "text only"
            print(f"{how}: {p['variant']} {p['suite']} {p['task']} {p['injection']}")
    head = ["suite", "TCR@0", "TCR@1", "TCR@∞", "questions"]
    head += [f"{v}: {what}" for v in variants for what in ("calls", "text", "other")]
    rows = [row(name, [name], tasks, pairs, variants) for name in names]
    rows.append(row("all", names, tasks, pairs, variants))
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print()


def row(
    title: str, names: list[str], tasks: list[Any], pairs: list[Any], variants: tuple[str, ...]
) -> list[str]:
    """Returns the cells of a suite, or of all."""
    some = [t for t in tasks if t["suite"] in names]
    cells = [title]
    for i in range(len(LIMITS)):
        cells.append(f"{sum(t['done'][i] for t in some)} of {len(some)}" if some else "")
    cells.append(f"{sum(t['questions'] for t in some) / len(some):.2f}" if some else "")
    for v in variants:
        of = [p for p in pairs if p["suite"] in names and p["variant"] == v]
        cells += [
            f"{sum(p['reached'] for p in of)} of {len(of)}",
            str(sum(p["text"] for p in of)),
            str(sum(p["changed"] for p in of)),
        ]
    return cells


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
