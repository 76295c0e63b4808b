"""A class that derives from the assistant and reviews its own answers."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")


class Reviewed(AssistantAgent):
    async def on_messages(self, messages, cancellation_token):
        response = await super().on_messages(messages, cancellation_token)
        await client.create([UserMessage(content=f"Review {response.chat_message}", source="user")])
        return response

    async def on_messages_stream(self, messages, cancellation_token):
        async for event in super().on_messages_stream(messages, cancellation_token):
            yield event
        await client.create([UserMessage(content="Review it", source="user")])


print(asyncio.run(Reviewed("writer", client).run(task="Write")).messages[-1])
