"""A society of mind within a round robin."""
import asyncio

from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
agent1 = AssistantAgent("assistant1", model_client=client, system_message="Write.")
agent2 = AssistantAgent("assistant2", model_client=client, system_message="Criticize.")
inner_team = RoundRobinGroupChat([agent1, agent2], termination_condition=MaxMessageTermination(3))
society = SocietyOfMindAgent("society_of_mind", team=inner_team, model_client=client)
agent3 = AssistantAgent("assistant3", model_client=client, system_message="Translate.")
team = RoundRobinGroupChat([society, agent3], max_turns=4)
asyncio.run(team.run(task="A short story"))
