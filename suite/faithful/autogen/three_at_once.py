"""A reply with parallel tool calls, then one more call, with reflection."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


def price(item: str) -> str:
    """Says what something costs."""
    return f"{item}: 3 euros"


def total(prices: list[int]) -> int:
    """Adds prices."""
    return sum(prices)


clerk = AssistantAgent(
    "clerk",
    OpenAIChatCompletionClient(model="gpt-4o"),
    tools=[price, total],
    max_tool_iterations=2,
    reflect_on_tool_use=True,
    system_message="Add the prices.",
)


async def main() -> None:
    print((await clerk.run(task="A pear, an apple and a plum")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
