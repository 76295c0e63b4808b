"""Instructions that are made by a function, which asks an agent for the style."""
import asyncio

from agents import Agent, Runner, function_tool

stylist = Agent(name="Stylist", instructions="Name a style in one word.", model="gpt-4o-mini")


async def instructions(context, agent) -> str:
    style = await Runner.run(stylist, "Which style today?")
    return f"You write in the style {style.final_output}."


@function_tool
def count_words(text: str) -> int:
    """Counts words."""
    return len(text.split())


writer = Agent(name="Writer", instructions=instructions, model="gpt-4o-mini", tools=[count_words])
print(asyncio.run(Runner.run(writer, "Write a poem", max_turns=3)).final_output)
