"""A selector function that asks the model itself."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import SelectorGroupChat
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
one = AssistantAgent("one", client, description="One.")
two = AssistantAgent("two", client, description="Two.")


async def choose(messages):
    reply = await client.create([UserMessage(content=f"one or two? {messages[-1].to_text()}", source="user")])
    return "one" if "one" in reply.content else "two"


team = SelectorGroupChat([one, two], model_client=client, selector_func=choose, max_turns=3)
print(asyncio.run(team.run(task="Build it")).stop_reason)
