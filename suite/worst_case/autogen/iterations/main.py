"""An assistant with a tool and a limit of iterations."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def search(query: str) -> str:
    """Searches the web."""
    return "nothing"


client = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)
agent = AssistantAgent("assistant", client, tools=[search], max_tool_iterations=4)
print(asyncio.run(agent.run(task="Find it")).messages[-1])
