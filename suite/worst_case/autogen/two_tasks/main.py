"""A team that is given two tasks, one after the other."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import Console
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main():
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    team = RoundRobinGroupChat([AssistantAgent("one", client), AssistantAgent("two", client)], max_turns=2)
    await Console(team.run_stream(task="Write a poem"))
    await Console(team.run_stream(task="Now in German"))
    await client.close()


asyncio.run(main())
