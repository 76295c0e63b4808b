"""Agents that hand over to each other."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini", parallel_tool_calls=False)


def refund(flight: str) -> str:
    """Refunds a flight."""
    return f"{flight} is refunded"


travel = AssistantAgent("travel", client, handoffs=["refunder", "user"], system_message="Help travelers.")
refunder = AssistantAgent("refunder", client, handoffs=["travel", "user"], tools=[refund], system_message="Refund.")
team = Swarm([travel, refunder], termination_condition=HandoffTermination("user"), max_turns=5)
print(asyncio.run(team.run(task="Refund my flight")).stop_reason)
