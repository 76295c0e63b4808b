"""An agent class of its own, without and with a model."""
import asyncio
from typing import Sequence

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient


class CountDown(BaseChatAgent):
    def __init__(self, name: str, count: int = 3):
        super().__init__(name, "Counts down.")
        self._count = count
        self._client = OpenAIChatCompletionClient(model="gpt-4o-mini")

    @property
    def produced_message_types(self):
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], token: CancellationToken) -> Response:
        said = ""
        for i in range(self._count, 0, -1):
            said = (await self._client.create([UserMessage(content=f"Say {i}", source="me")])).content
        return Response(chat_message=TextMessage(content=str(said), source=self.name))

    async def on_reset(self, token: CancellationToken) -> None:
        pass


async def main():
    agent = CountDown("countdown")
    response = await agent.on_messages([], CancellationToken())
    print(response.chat_message.content)


asyncio.run(main())
