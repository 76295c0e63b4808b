"""A team without any limit."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
team = RoundRobinGroupChat([AssistantAgent("one", client), AssistantAgent("two", client)], termination_condition=TextMentionTermination("TERMINATE"))
print(asyncio.run(team.run(task="Talk")).stop_reason)
