"""An assistant with a typed answer."""
import asyncio
from typing import Literal

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Mood(BaseModel):
    thoughts: str
    response: Literal["happy", "sad"]


agent = AssistantAgent("mood", OpenAIChatCompletionClient(model="gpt-4o-mini"), output_content_type=Mood)
print(asyncio.run(agent.run(task="I won")).messages[-1])
