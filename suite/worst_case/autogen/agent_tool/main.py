"""An agent as a tool of another."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.tools import AgentTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)
writer = AssistantAgent("writer", client, system_message="Write.", description="Writes.")
lead = AssistantAgent("lead", client, tools=[AgentTool(agent=writer)], max_tool_iterations=3)
print(asyncio.run(lead.run(task="Write a poem")).messages[-1])
