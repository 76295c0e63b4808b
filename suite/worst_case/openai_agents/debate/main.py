"""Two agents who answer each other for a number of rounds."""
import asyncio

from agents import Agent, Runner

pro = Agent(name="Pro", instructions="Argue for it.", model="gpt-4o-mini")
con = Agent(name="Con", instructions="Argue against it.", model="gpt-4o-mini")


async def debate(motion: str, rounds: int):
    said = motion
    for i in range(rounds):
        speaker = pro if i % 2 == 0 else con
        result = await Runner.run(speaker, said)
        said = result.final_output
    return said


asyncio.run(debate("Cats are better", rounds=4))
