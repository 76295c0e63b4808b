"""A decorator of the project that calls a function again when it fails."""
import asyncio
import functools

from agents import Agent, Runner
from pydantic import BaseModel


class Answer(BaseModel):
    value: int


agent = Agent(name="Solver", instructions="Solve it.", model="gpt-4o-mini", output_type=Answer)


def again(times):
    def wrap(function):
        @functools.wraps(function)
        async def inner(*args, **kwargs):
            for attempt in range(times):
                try:
                    return await function(*args, **kwargs)
                except Exception:
                    if attempt == times - 1:
                        raise

        return inner

    return wrap


@again(times=4)
async def solve(question: str) -> int:
    result = await Runner.run(agent, question)
    return result.final_output.value


print(asyncio.run(solve("6 times 7")))
