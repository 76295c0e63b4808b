"""A handoff and back, each agent with its own history of calls."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")


def look_up(order: int) -> str:
    """Looks an order up."""
    return f"order {order} is lost"


front = AssistantAgent("front", client, handoffs=["store"], system_message="Answer. Say BYE.")
store = AssistantAgent("store", client, handoffs=["front"], tools=[look_up], system_message="Look it up.")
team = Swarm([front, store], termination_condition=TextMentionTermination("BYE"), max_turns=9)


async def main() -> None:
    print((await team.run(task="Where is order 7?")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
