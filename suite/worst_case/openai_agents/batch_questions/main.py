"""Runs for each of the questions of a file, in a comprehension."""
import asyncio
import sys

from agents import Agent, Runner

agent = Agent(name="Answers", instructions="Answer.", model="gpt-4o-mini")


def questions():
    return [line for line in "a?\nb?\nc?\n".splitlines()]


async def main():
    results = [await Runner.run(agent, q) for q in questions()]
    print([r.final_output for r in results])


asyncio.run(main())
