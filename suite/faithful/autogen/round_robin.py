"""A round-robin group chat of two with a termination word."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
writer = AssistantAgent("writer", client, system_message="You write.")
critic = AssistantAgent("critic", client, system_message="You judge. Say APPROVE if it is good.")
team = RoundRobinGroupChat([writer, critic], termination_condition=TextMentionTermination("APPROVE") | MaxMessageTermination(9))


async def main() -> None:
    print((await team.run(task="A line about bees")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
