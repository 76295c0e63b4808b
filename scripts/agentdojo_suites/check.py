"""Checks the plans with CPython against the verdicts of the benchmark.

python -m agentdojo_suites.check [--undefended] [--record] SUITE…
"""

from __future__ import annotations

import sys
import traceback

from agentdojo_suites import cpython, figures
from agentdojo_suites.harness import (
    SUITES,
    Calls,
    Model,
    attack,
    copied,
    environment,
    plans,
    suite,
    undefended,
    verdict,
)


def right(name: str, task_id: str) -> str | None:
    """Runs one plan, and returns nothing if the benchmark calls the task done, or else the reason."""
    task = suite(name).user_tasks[task_id]
    env = environment(name, {}, task)
    before = copied(env)
    calls = Calls(name, env)
    try:
        output = cpython.run(plans(name)[task_id], calls, Model(name))
    except Exception:
        return traceback.format_exc(limit=-2)
    return None if verdict(name, task, output, before, calls) else f"not done: {output!r}"


def main(arguments: list[str]) -> int:
    """Prints what is wrong, and returns how many plans are."""
    names = [a for a in arguments if not a.startswith("-")] or [s for s in SUITES]
    wrong = 0
    for name in names:
        reasons = {t: right(name, t) for t in suite(name).user_tasks}
        bad = {t: r for t, r in reasons.items() if r is not None}
        wrong += len(bad)
        for task_id, reason in bad.items():
            print(f"{name} {task_id}: {reason}")
        print(f"{name}: {len(reasons) - len(bad)} of {len(reasons)} plans are right")
        if "--undefended" in arguments:
            tasks, wishes = suite(name).user_tasks.values(), suite(name).injection_tasks
            pairs = [(t, attack(name, i)) for t in tasks for i in wishes]
            reached = sum(undefended(name, t, a) for t, a in pairs)
            print(f"{name}: undefended, {reached} of {len(pairs)} attacks succeed")
            if "--record" in arguments:
                figures.record_undefended(name, reached)
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
