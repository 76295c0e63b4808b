"""A tool that asks the model client itself."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)


async def summarize(text: str) -> str:
    """Summarizes."""
    reply = await client.create([UserMessage(content=text, source="user")])
    return str(reply.content)


tool = FunctionTool(summarize, description="Summarizes.", name="summarize")
agent = AssistantAgent("helper", client, tools=[tool], reflect_on_tool_use=True)
team = RoundRobinGroupChat([agent], termination_condition=MaxMessageTermination(4))
asyncio.run(team.run(task="Sum up"))
