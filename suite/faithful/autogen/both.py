"""Two termination conditions: a word, and a number of messages."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, SourceMatchTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
left = AssistantAgent("left", client, system_message="You are left.")
right = AssistantAgent("right", client, system_message="You are right.")
ending = (TextMentionTermination("YES", sources=["left"]) & MaxMessageTermination(4) & SourceMatchTermination(["right"])) | TextMentionTermination("STOP")
team = RoundRobinGroupChat([left, right], termination_condition=ending, max_turns=10)


async def main() -> None:
    print((await team.run(task="Agree")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
