"""Answers issues of a public repository; knows the private one, too."""
import asyncio
from pathlib import Path

import requests
from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

API = "https://api.github.com/repos/acme"


def read_issue(number: int) -> str:
    """Reads an issue."""
    return requests.get(f"{API}/public/issues/{number}").json()["body"]


def read_source(path: str) -> str:
    """Reads a file of the private repository."""
    return Path("/srv/private").joinpath(path).read_text()


def comment(number: int, text: str) -> str:
    """Comments on an issue."""
    requests.post(f"{API}/public/issues/{number}/comments", json={"body": text})
    return "done"


agent = OpenAIChatClient(model="gpt-4o").as_agent(name="triage", instructions="You answer issues.", tools=[read_issue, read_source, comment])


async def main() -> None:
    print(await agent.run("Answer issue 12."))


asyncio.run(main())
