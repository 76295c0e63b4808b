"""A tool loop that ends with a text."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


def price(item: str) -> str:
    """Says what something costs."""
    return f"{item}: 3 euros"


agent = AssistantAgent(
    "shop", OpenAIChatCompletionClient(model="gpt-4o"), tools=[price], max_tool_iterations=5
)


async def main() -> None:
    print((await agent.run(task="A pear and an apple?")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
