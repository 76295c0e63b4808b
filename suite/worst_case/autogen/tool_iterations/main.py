"""An agent with several tool iterations and a typed answer."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Answer(BaseModel):
    thoughts: str
    number: int


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


client = OpenAIChatCompletionClient(model="gpt-4o")
agent = AssistantAgent("counter", client, tools=[add], output_content_type=Answer, max_tool_iterations=4)
print(asyncio.run(agent.run(task="1 + 2 + 3")).messages[-1])
