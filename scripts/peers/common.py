"""What a framework takes for an agent, as crates/runtime/examples/load.rs measures it for Entail: a loop of ten steps, each one call
of a model and one of a tool (an async function, where the framework has such), with a fake model that answers at once; and the memory of an
agent that waits for its model.

A file `bench_NAME.py` gives `main` a function: of a `Plan` it makes what all runs have in common, and gives back a coroutine function that
carries out one run and returns its answer.
"""

import asyncio
import gc
import statistics
import sys
import time

STEPS = 10
ANSWER = "found"


class Plan:
    """What the model does: so many calls of the tool `look`, then it waits if it is to, then it answers."""

    def __init__(self, calls, waits=False):
        self.calls = calls
        self.go = asyncio.Event() if waits else None
        self.waiting = 0

    def is_call(self, done):
        """Whether the model calls the tool, after so many results."""
        return done < self.calls

    async def before_answer(self):
        if self.go is not None:
            self.waiting += 1
            await self.go.wait()


def memory():
    """Bytes of memory that this process has."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


async def waiting(make, agents, calls):
    """KiB for each of so many agents that wait after so many steps."""
    # What the first run loads is not what an agent takes.
    assert await make(Plan(1))() == ANSWER
    plan = Plan(calls, waits=True)
    one = make(plan)
    gc.collect()
    before = memory()
    runs = [asyncio.create_task(one()) for _ in range(agents)]
    while plan.waiting < agents:
        done = [run for run in runs if run.done()]
        if done:
            raise RuntimeError(f"a run ended too early: {done[0].exception() or done[0].result()!r}")
        await asyncio.sleep(0.05)
    gc.collect()
    each = (memory() - before) / agents / 1024
    plan.go.set()
    answers = await asyncio.gather(*runs)
    assert answers == [ANSWER] * agents, answers[0]
    return each


async def steps(make, seconds=8.0):
    """Microseconds of processor time for a step: the median of the runs that fit in the time, without the first two."""
    one = make(Plan(STEPS))
    took = []
    begun = time.monotonic()
    while len(took) < 7 or time.monotonic() - begun < seconds:
        before = time.process_time()
        answer = await one()
        took.append(time.process_time() - before)
        assert answer == ANSWER, answer
    return statistics.median(took[2:]) / STEPS * 1e6


def main(make):
    if sys.argv[1] == "steps":
        print(f"{asyncio.run(steps(make)):.0f}")
    else:
        print(f"{asyncio.run(waiting(make, int(sys.argv[2]), int(sys.argv[3]))):.1f}")
