"""Agents as tools of an agent, with tools of their own."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool


@function_tool
async def look(word: str, deep: bool = False) -> str:
    """Looks a word up.

    Args:
        word: what to look up
        deep: how well
    """
    return f"{word}: insect"


finder = Agent(name="finder", instructions="Find.", model="m", tools=[look])
french = Agent(name="french", instructions="Say it in French.", model="m", model_settings=ModelSettings(temperature=0.2))
lead = Agent(
    name="lead",
    instructions="Ask the others.",
    model="m",
    tools=[
        finder.as_tool(tool_name="find", tool_description="Finds out."),
        french.as_tool(tool_name="to_french", tool_description="Translates."),
    ],
)


async def main():
    result = await Runner.run(lead, input="What is a bee, in French?", max_turns=6)
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
