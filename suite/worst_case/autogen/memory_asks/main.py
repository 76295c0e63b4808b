"""A condition of the project that asks a model whether to stop."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import FunctionalTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")


async def finished(messages) -> bool:
    reply = await client.create([UserMessage(content="Is it finished?", source="user")])
    return reply.content == "yes"


team = RoundRobinGroupChat([AssistantAgent("one", client)], termination_condition=FunctionalTermination(finished), max_turns=3)
print(asyncio.run(team.run(task="Talk")).stop_reason)
