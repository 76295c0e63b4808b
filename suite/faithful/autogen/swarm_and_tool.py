"""A handoff and a tool call in one reply."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")


def note(text: str) -> str:
    """Takes a note."""
    return "noted"


front = AssistantAgent("front", client, handoffs=["user", "store"], tools=[note], system_message="Answer.")
store = AssistantAgent("store", client, handoffs=["front"], system_message="Look it up.")
team = Swarm([front, store], termination_condition=HandoffTermination(target="user"), max_turns=9)


async def main() -> None:
    print((await team.run(task="Where is order 7?")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
