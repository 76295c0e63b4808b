"""A user proxy whose input is made by a model."""
import asyncio

from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")


async def simulated(prompt: str, cancellation_token=None) -> str:
    reply = await client.create([UserMessage(content=f"Answer as a user: {prompt}", source="user")])
    return str(reply.content)


assistant = AssistantAgent("assistant", client)
user = UserProxyAgent("user", input_func=simulated)
team = RoundRobinGroupChat([assistant, user], max_turns=4)
print(asyncio.run(team.run(task="Help me")).stop_reason)
