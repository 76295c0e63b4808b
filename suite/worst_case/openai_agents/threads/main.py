"""Runs in threads of a pool."""
from concurrent.futures import ThreadPoolExecutor

from agents import Agent, Runner

agent = Agent(name="Answers", instructions="Answer.", model="gpt-4o-mini")


def answer(question: str) -> str:
    import asyncio

    return asyncio.run(Runner.run(agent, question)).final_output


with ThreadPoolExecutor() as pool:
    print(list(pool.map(answer, ["a", "b", "c"])))
