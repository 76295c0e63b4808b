"""A writer and a critic until APPROVE or ten messages."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

model_client = OpenAIChatCompletionClient(model="gpt-4o-mini")
primary_agent = AssistantAgent("primary", model_client=model_client, system_message="Write.")
critic_agent = AssistantAgent("critic", model_client=model_client, system_message="Respond with 'APPROVE' when done.")
termination = TextMentionTermination("APPROVE") | MaxMessageTermination(max_messages=10)
team = RoundRobinGroupChat([primary_agent, critic_agent], termination_condition=termination)


async def main():
    await team.run(task="Write a poem")
    await team.reset()
    async for message in team.run_stream(task="Write a song"):
        print(type(message).__name__)


asyncio.run(main())
