"""A team as a member of a team."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
writer = AssistantAgent("writer", client, system_message="Write.")
critic = AssistantAgent("critic", client, system_message="Criticize.")
editor = AssistantAgent("editor", client, system_message="Edit.")
board = RoundRobinGroupChat([critic, editor], name="board", description="Reviews.", max_turns=2)
team = RoundRobinGroupChat([writer, board], max_turns=4)


async def main() -> None:
    print((await team.run(task="A poem")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
