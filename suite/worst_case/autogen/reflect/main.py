"""An assistant that reflects on what its tool gave."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def weather(city: str) -> str:
    """Says what the weather is like."""
    return "rain"


agent = AssistantAgent(
    "assistant", OpenAIChatCompletionClient(model="gpt-4o-mini"), tools=[weather], reflect_on_tool_use=True
)
print(asyncio.run(agent.run(task="Oslo?")).messages[-1])
