"""Agents that a factory makes by role, each run once."""
import asyncio

from agents import Agent, Runner

ROLES = {"poet": "Write a poem.", "critic": "Criticize it.", "editor": "Edit it."}


def build(name: str) -> Agent:
    return Agent(name=name, instructions=ROLES[name], model="gpt-4o-mini")


async def main():
    text = "rain"
    for name in ROLES:
        text = (await Runner.run(build(name), text)).final_output
    print(text)


asyncio.run(main())
