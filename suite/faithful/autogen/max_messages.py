"""A round-robin group chat of three with a limit of messages."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient


def member(name: str) -> AssistantAgent:
    return AssistantAgent(name, OpenAIChatCompletionClient(model="gpt-4o"), system_message=f"You are {name}.")


team = RoundRobinGroupChat([member(n) for n in ("ann", "bob", "cleo")], termination_condition=MaxMessageTermination(max_messages=5))


async def main() -> None:
    print((await team.run(task="Count on")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
