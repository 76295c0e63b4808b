"""Sums up public issues."""
import asyncio

import requests
from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient


def read_issue(number: int) -> str:
    """Reads an issue."""
    return requests.get(f"https://api.github.com/repos/acme/public/issues/{number}").text


agent = Agent(client=OpenAIChatClient(model="gpt-4o"), name="reader", instructions="You sum up issues.", tools=[read_issue])


async def main() -> None:
    print(await agent.run("Sum up issue 7."))


asyncio.run(main())
