"""The same question to several agents at once, then one that decides."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main():
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    panel = [AssistantAgent(f"expert_{i}", client) for i in range(4)]
    answers = await asyncio.gather(*[a.run(task="Yes or no?") for a in panel])
    chair = AssistantAgent("chair", client)
    await chair.run(task="\n".join(str(a.messages[-1].content) for a in answers))


asyncio.run(main())
