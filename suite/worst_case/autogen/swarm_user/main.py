"""The refund swarm: handoffs, tools, and a user in the loop."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import HandoffMessage
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient


def refund_flight(flight_id: str) -> str:
    """Refund a flight"""
    return f"Flight {flight_id} refunded"


client = OpenAIChatCompletionClient(model="gpt-4o", parallel_tool_calls=False)
travel_agent = AssistantAgent("travel_agent", client, handoffs=["flights_refunder", "user"])
flights_refunder = AssistantAgent("flights_refunder", client, handoffs=["travel_agent", "user"], tools=[refund_flight])
termination = HandoffTermination(target="user") | TextMentionTermination("TERMINATE") | MaxMessageTermination(8)
team = Swarm([travel_agent, flights_refunder], termination_condition=termination)


async def run_team() -> None:
    task_result = await team.run(task="Refund my flight")
    last_message = task_result.messages[-1]
    for answer in ["507811", "Smith"]:
        if not isinstance(last_message, HandoffMessage):
            break
        task_result = await team.run(
            task=HandoffMessage(source="user", target=last_message.source, content=answer)
        )
        last_message = task_result.messages[-1]


asyncio.run(run_team())
