"""A team that is resumed with its state, without a new task."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
team = RoundRobinGroupChat(
    [AssistantAgent("a", client), AssistantAgent("b", client)], termination_condition=MaxMessageTermination(4)
)


async def main():
    await team.run(task="Talk")
    for _ in range(2):
        await team.run()


asyncio.run(main())
