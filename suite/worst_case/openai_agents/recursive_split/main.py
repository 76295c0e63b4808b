"""A function that splits a text and calls itself."""
import asyncio

from agents import Agent, Runner

summarizer = Agent(name="Summarizer", instructions="Summarize.", model="gpt-4o-mini")


async def summarize(text: str, depth: int = 0) -> str:
    if depth == 2:
        return (await Runner.run(summarizer, text)).final_output
    middle = len(text) // 2
    left = await summarize(text[:middle], depth + 1)
    right = await summarize(text[middle:], depth + 1)
    return (await Runner.run(summarizer, left + right)).final_output


print(asyncio.run(summarize("a long text " * 100)))
