"""A conversation in a session, in one function per question."""
import asyncio

from agents import Agent, Runner, SQLiteSession

agent = Agent(name="Assistant", instructions="Reply very concisely.", model="gpt-4o-mini")
session = SQLiteSession("conversation_123")


async def ask(question: str) -> str:
    result = await Runner.run(agent, question, session=session)
    return result.final_output


async def main():
    print(await ask("What city is the Golden Gate Bridge in?"))
    print(await ask("What state is it in?"))
    print(await ask("What's the population of that state?"))


asyncio.run(main())
