"""A team that answers as one agent."""
import asyncio

from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
one = AssistantAgent("one", client)
two = AssistantAgent("two", client)
inner = RoundRobinGroupChat([one, two], termination_condition=MaxMessageTermination(3))
society = SocietyOfMindAgent("society", team=inner, model_client=client)
last = AssistantAgent("translator", client)
team = RoundRobinGroupChat([society, last], max_turns=2)
print(asyncio.run(team.run(task="Write a story")).stop_reason)
