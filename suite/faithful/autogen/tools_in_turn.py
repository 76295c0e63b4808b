"""A group chat of two agents with tools, one with reflection."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")


def price(item: str) -> str:
    """Says what something costs."""
    return f"{item}: 3 euros"


def total(prices: list[int]) -> int:
    """Adds prices."""
    return sum(prices)


buyer = AssistantAgent("buyer", client, tools=[price], system_message="Ask for prices.")
clerk = AssistantAgent(
    "clerk", client, tools=[total], max_tool_iterations=2, reflect_on_tool_use=True, system_message="Add them."
)
team = RoundRobinGroupChat([buyer, clerk], max_turns=4)


async def main() -> None:
    print((await team.run(task="A pear and an apple")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
