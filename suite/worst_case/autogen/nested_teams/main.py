"""A team within a team."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import TeamTool
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)
a, b = AssistantAgent("a", client), AssistantAgent("b", client)
pair = RoundRobinGroupChat([a, b], termination_condition=MaxMessageTermination(3))
tool = TeamTool(team=pair, name="pair", description="Two writers.")
lead = AssistantAgent("lead", client, tools=[tool], max_tool_iterations=2, reflect_on_tool_use=True)
print(asyncio.run(lead.run(task="A poem")).messages[-1])
