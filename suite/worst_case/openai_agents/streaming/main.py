"""A run whose events are streamed."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool


@function_tool
def roll() -> int:
    """Rolls a die."""
    return 4


agent = Agent(name="Dice", instructions="Roll.", model="gpt-4o-mini", tools=[roll], model_settings=ModelSettings(parallel_tool_calls=False))


async def main():
    result = Runner.run_streamed(agent, "Roll three times", max_turns=4)
    async for event in result.stream_events():
        if event.type == "run_item_stream_event":
            print(event.item.type)
    print(result.final_output)


asyncio.run(main())
