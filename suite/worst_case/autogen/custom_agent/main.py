"""An agent class of the project that asks the client twice."""
import asyncio
from typing import Sequence

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")


class Debater(BaseChatAgent):
    def __init__(self, name: str):
        super().__init__(name, "Debates with itself.")

    @property
    def produced_message_types(self):
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token) -> Response:
        text = messages[-1].to_text() if messages else ""
        for side in ("for", "against"):
            reply = await client.create([UserMessage(content=f"Argue {side}: {text}", source="user")])
            text = str(reply.content)
        return Response(chat_message=TextMessage(content=text, source=self.name))

    async def on_reset(self, cancellation_token) -> None:
        pass


judge = AssistantAgent("judge", client)
team = RoundRobinGroupChat([Debater("debater"), judge], max_turns=4)
print(asyncio.run(team.run(task="Tea or coffee?")).stop_reason)
