"""A tool that asks the model client itself."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import SystemMessage, UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")


async def translate(text: str) -> str:
    """Translates a text."""
    result = await client.create([SystemMessage(content="Translate."), UserMessage(content=text, source="user")])
    return str(result.content)


agent = AssistantAgent("desk", client, tools=[FunctionTool(translate, description="Translates.")], max_tool_iterations=3)
print(asyncio.run(agent.run(task="Good morning")).messages[-1])
