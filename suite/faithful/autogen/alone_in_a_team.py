"""An agent alone in a team continues until it says that it is done: one conversation."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


agent = AssistantAgent("adder", OpenAIChatCompletionClient(model="gpt-4o"), tools=[add], system_message="Add. Say DONE.")
team = RoundRobinGroupChat([agent], termination_condition=TextMentionTermination("DONE"), max_turns=6)


async def main() -> None:
    print((await team.run(task="1 + 2 + 3")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
