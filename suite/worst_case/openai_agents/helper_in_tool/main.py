"""A tool that calls a helper, which calls the API of the provider directly."""
import asyncio

from agents import Agent, Runner, function_tool
from openai import AsyncOpenAI

client = AsyncOpenAI()


async def complete(text: str) -> str:
    reply = await client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": text}])
    return reply.choices[0].message.content or ""


@function_tool
async def translate(text: str) -> str:
    """Translates a text into German."""
    return await complete(f"Translate into German: {text}")


agent = Agent(name="Desk", instructions="Answer in German; use the tool.", model="gpt-4o-mini", tools=[translate])


async def main():
    print((await Runner.run(agent, "Good morning", max_turns=4)).final_output)


asyncio.run(main())
