"""Agents that a function makes from a table."""
import asyncio

from agents import Agent, Runner

PROFILES = {"optimist": "Be hopeful.", "pessimist": "Be gloomy.", "realist": "Be exact."}


def make(name: str, instructions: str) -> Agent:
    return Agent(name=name, instructions=instructions, model="gpt-4o-mini")


async def panel(question: str) -> list[str]:
    answers = []
    for name, text in PROFILES.items():
        agent = make(name, text)
        answers.append((await Runner.run(agent, question)).final_output)
    chair = make("chair", "Sum up.")
    return (await Runner.run(chair, "\n".join(answers))).final_output


print(asyncio.run(panel("Will it rain?")))
