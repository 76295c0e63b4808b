"""One agent in a team until it has no more tool to call."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient


def increment_number(number: int) -> int:
    """Increment a number by 1."""
    return number + 1


client = OpenAIChatCompletionClient(model="gpt-4o", parallel_tool_calls=False)
looped = AssistantAgent("looped_assistant", model_client=client, tools=[increment_number])
team = RoundRobinGroupChat([looped], termination_condition=TextMessageTermination("looped_assistant"))
asyncio.run(team.run(task="Increment 5 to 10"))
