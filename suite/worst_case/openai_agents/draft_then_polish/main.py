"""The same agent is run twice, with nothing between."""
import asyncio

from agents import Agent, Runner

writer = Agent(name="Writer", instructions="Write well.", model="gpt-4o-mini")


async def main():
    draft = await Runner.run(writer, "Write a haiku about rain.")
    final = await Runner.run(writer, f"Improve it: {draft.final_output}")
    print(final.final_output)


asyncio.run(main())
