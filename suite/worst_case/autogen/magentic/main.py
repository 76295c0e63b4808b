"""A manager with a ledger."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
coder = AssistantAgent("coder", client, description="Codes.")
team = MagenticOneGroupChat([coder], model_client=client, max_turns=3, max_stalls=1)
print(asyncio.run(team.run(task="Build it")).stop_reason)
