"""Agents that run at the same time."""
import asyncio

from langchain.agents import create_agent


def search(query: str) -> str:
    """Searches."""
    return "found"


async def research(topic: str):
    agent = create_agent("openai:gpt-4o-mini", [search])
    return await agent.ainvoke({"messages": [("user", topic)]}, {"recursion_limit": 5})


async def main():
    await asyncio.gather(*(research(t) for t in ["bees", "ants", "wasps"]))


asyncio.run(main())
