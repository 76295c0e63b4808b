"""A swarm: a handoff to an agent with a tool, and a handoff to a person."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")


def refund(order: int) -> str:
    """Pays an order back."""
    return f"order {order} is paid back"


front = AssistantAgent("front", client, handoffs=["Money"], system_message="Send people on.")
money = AssistantAgent(
    "Money", client, handoffs=["front", "user"], tools=[refund], max_tool_iterations=3, system_message="Settle it."
)
team = Swarm([front, money], termination_condition=HandoffTermination(target="user") | MaxMessageTermination(8))


async def main() -> None:
    print((await team.run(task="I paid twice for order 7")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
