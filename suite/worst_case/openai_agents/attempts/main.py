"""Another run when one fails."""
import asyncio

from agents import Agent, MaxTurnsExceeded, Runner, function_tool


@function_tool
def try_door(number: int) -> str:
    """Tries a door."""
    return "locked"


agent = Agent(name="Escape", instructions="Find the open door.", model="gpt-4o-mini", tools=[try_door])


async def main():
    for attempt in range(3):
        try:
            result = await Runner.run(agent, f"Attempt {attempt}", max_turns=3)
            print(result.final_output)
            break
        except MaxTurnsExceeded:
            print("again")


asyncio.run(main())
