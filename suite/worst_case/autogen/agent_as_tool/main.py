"""Agents and a team as tools of an agent."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool, TeamTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
main_client = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)
writer = AssistantAgent("writer", client, description="Writes.")
pair = RoundRobinGroupChat(
    [AssistantAgent("x", client), AssistantAgent("y", client)], termination_condition=MaxMessageTermination(5)
)
team_tool = TeamTool(team=pair, name="pair", description="Two who talk.")
agent = AssistantAgent(
    "assistant", main_client, tools=[AgentTool(agent=writer), team_tool], max_tool_iterations=3
)
asyncio.run(agent.run(task="Write it"))
