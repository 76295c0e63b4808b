"""An agent that is given each of several tasks."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

TASKS = ["one", "two", "three"]


async def main():
    agent = AssistantAgent("worker", OpenAIChatCompletionClient(model="gpt-4o-mini"))
    for task in TASKS:
        result = await agent.run(task=task)
        print(result.messages[-1])


asyncio.run(main())
