"""A model client that is asked in a loop, with structured output."""
import asyncio

from autogen_core.models import SystemMessage, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main():
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    messages = [SystemMessage(content="You are helpful.")]
    for question in ["One?", "Two?", "Three?"]:
        messages.append(UserMessage(content=question, source="user"))
        result = await client.create(messages)
        print(result.content)
    await client.close()


asyncio.run(main())
