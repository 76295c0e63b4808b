"""A conversation that goes on until the user leaves; the user is a script here."""
import asyncio

from agents import Agent, Runner

LINES = iter(["Hello", "And then?", "Why?", "quit"])
agent = Agent(name="Companion", instructions="Chat.", model="gpt-4o-mini")


async def main():
    history = []
    while True:
        line = next(LINES)
        if line == "quit":
            break
        result = await Runner.run(agent, history + [{"role": "user", "content": line}])
        print(result.final_output)
        history = result.to_input_list()


asyncio.run(main())
