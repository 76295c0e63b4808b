"""Hooks of a run, given to the runner."""
import asyncio

from agents import Agent, RunHooks, Runner

namer = Agent(name="Namer", instructions="Give the conversation a title.", model="gpt-4o-mini")
agent = Agent(name="Assistant", instructions="Answer briefly.", model="gpt-4o-mini")


class Titles(RunHooks):
    async def on_agent_start(self, context, agent):
        if agent.name != "Namer":
            title = await Runner.run(namer, "Name it.")
            print(title.final_output)


async def main():
    result = await Runner.run(agent, "Hello", hooks=Titles())
    print(result.final_output)


asyncio.run(main())
