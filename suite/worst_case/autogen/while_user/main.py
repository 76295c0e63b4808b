"""A loop that gives an agent what the user writes; the user is a list here."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.ui import Console
from autogen_ext.models.openai import OpenAIChatCompletionClient

lines = ["exit", "third", "second", "first"]


async def main():
    agent = AssistantAgent("helper", OpenAIChatCompletionClient(model="gpt-4o-mini"))
    while (line := lines.pop()) != "exit":
        await Console(agent.run_stream(task=line))


asyncio.run(main())
