"""A function tool whose body runs another agent."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool

searcher = Agent(name="Searcher", instructions="Summarize what is known about the topic.", model="gpt-4o-mini")


@function_tool
async def research(topic: str) -> str:
    """Researches a topic."""
    result = await Runner.run(searcher, f"Topic: {topic}", max_turns=2)
    return result.final_output


lead = Agent(
    name="Lead",
    instructions="Research, then answer.",
    model="gpt-4o-mini",
    tools=[research],
    model_settings=ModelSettings(parallel_tool_calls=False),
)


async def main():
    print((await Runner.run(lead, "What is new in batteries?", max_turns=4)).final_output)


asyncio.run(main())
