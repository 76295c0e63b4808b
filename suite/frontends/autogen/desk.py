"""A team whose members use tools, hand over and are ended by several conditions."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_agentchat.ui import Console
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

RULES = ["Be brief.", "Say DONE at the end."]


def find_order(number: int) -> str:
    """Looks an order up."""
    return f"order {number} is on its way"


async def refund(number: int, reason: str = "none") -> str:
    return "paid back"


def client(name: str) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model=os.getenv("DESK_MODEL", name), temperature=0.2, api_key=os.environ["KEY"])


async def main() -> None:
    front = AssistantAgent(
        "front",
        model_client=client("gpt-4o"),
        system_message="You meet people. " + " ".join(RULES),
        tools=[find_order],
        handoffs=["money", Handoff(target="user", message="Over to you.")],
        max_tool_iterations=3,
    )
    money = AssistantAgent(
        "money",
        client("gpt-4o-mini"),
        description="Pays back.",
        system_message=f"You pay back. {RULES[0]}",
        tools=[FunctionTool(refund, description="Pays an order back.", name="pay_back")],
        handoffs=["front"],
        reflect_on_tool_use=True,
        memory=[],
    )
    ending = HandoffTermination(target="user") | (TextMentionTermination("DONE", sources=["front"]) & MaxMessageTermination(6))
    team = Swarm([front, money], termination_condition=ending, max_turns=20)
    await Console(team.run_stream(task="Where is order 7?"))


asyncio.run(main())
