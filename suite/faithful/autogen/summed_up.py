"""Parallel tool calls of two agents, with a summary line for each call."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")


def price(item: str) -> str:
    """Says what something costs."""
    return f"{item}: 3 euros"


def weight(item: str) -> int:
    """Says what something weighs."""
    return 200


buyer = AssistantAgent("buyer", client, tools=[price, weight], system_message="Ask for prices.")
clerk = AssistantAgent(
    "clerk", client, tools=[weight], tool_call_summary_format="{tool_name} = {result}", system_message="Weigh them."
)
team = RoundRobinGroupChat([buyer, clerk], max_turns=3)


async def main() -> None:
    print((await team.run(task="A pear and an apple")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
