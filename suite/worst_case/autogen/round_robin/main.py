"""A writer and a critic, at most six messages."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
writer = AssistantAgent("writer", model_client=client, system_message="Write.")
critic = AssistantAgent("critic", model_client=client, system_message="Say APPROVE when it is good.")
team = RoundRobinGroupChat([writer, critic], termination_condition=TextMentionTermination("APPROVE") | MaxMessageTermination(6))
print(asyncio.run(team.run(task="Write a poem")).stop_reason)
