"""What is done when the turns are used up is left to another agent."""
import asyncio

from agents import Agent, Runner, function_tool


@function_tool
def dig(place: str) -> str:
    """Digs."""
    return "nothing"


closer = Agent(name="Closer", instructions="Excuse yourself.", model="gpt-4o-mini")
digger = Agent(name="Digger", instructions="Dig until you find it.", model="gpt-4o-mini", tools=[dig])


async def sorry(data):
    return (await Runner.run(closer, "It took too long.")).final_output


async def main():
    result = await Runner.run(digger, "Find the treasure", max_turns=3, error_handlers={"max_turns": sorry})
    print(result.final_output)


asyncio.run(main())
