"""A MagenticOne orchestrator: plan, progress ledger, new plan, final answer."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")


def price(item: str) -> str:
    """Says what something costs."""
    return f"{item}: 3 euros"


buyer = AssistantAgent("buyer", client, tools=[price], description="Knows prices.", system_message="Ask for prices.")
clerk = AssistantAgent("clerk", client, description="Adds   numbers.", system_message="Add them.")
team = MagenticOneGroupChat([buyer, clerk], model_client=OpenAIChatCompletionClient(model="gpt-4o-mini"), max_stalls=2)


async def main() -> None:
    print((await team.run(task="What do two pears cost?")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
