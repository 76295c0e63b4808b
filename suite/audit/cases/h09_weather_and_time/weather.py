"""Weather and time."""
import asyncio
from datetime import datetime

import requests
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


def weather(latitude: float, longitude: float) -> str:
    """The weather at a place."""
    url = f"https://api.open-meteo.com/v1/forecast?latitude={latitude}&longitude={longitude}"
    return requests.get(url).text


def now() -> str:
    """The time."""
    return datetime.now().isoformat()


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o")
    agent = AssistantAgent("weather", model_client=client, system_message="You know the weather.", tools=[weather, now])
    print(await agent.run(task="Does it rain in Bern?"))


asyncio.run(main())
