"""A selector group chat without repeated speakers."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
planner = AssistantAgent("planner", client, description="Makes plans.", system_message="Plan.")
coder = AssistantAgent("coder", client, description="Writes code.", system_message="Write code.")
tester = AssistantAgent("tester", client, description="Tests   code.", system_message="Test.")
team = SelectorGroupChat([planner, coder, tester], model_client=OpenAIChatCompletionClient(model="gpt-4o-mini"), termination_condition=TextMentionTermination("PASSED"))


async def main() -> None:
    print((await team.run(task="Sort a list")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
