"""A selector who may ask several times for the next speaker."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
names = ["planner", "coder", "tester"]
members = [AssistantAgent(n, client, description=f"The {n}.") for n in names]
team = SelectorGroupChat(members, model_client=client, max_turns=4)
print(asyncio.run(team.run(task="Build it")).stop_reason)
