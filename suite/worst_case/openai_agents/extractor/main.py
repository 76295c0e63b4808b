"""An agent as a tool, whose output is condensed by a further agent."""
import asyncio

from agents import Agent, Runner

condenser = Agent(name="Condenser", instructions="Make it one line.", model="gpt-4o-mini")
analyst = Agent(name="Analyst", instructions="Analyze the numbers.", model="gpt-4o-mini")


async def condense(result) -> str:
    return (await Runner.run(condenser, result.final_output)).final_output


boss = Agent(
    name="Boss",
    instructions="Decide.",
    model="gpt-4o-mini",
    tools=[analyst.as_tool("analyze", "Analyses numbers.", custom_output_extractor=condense)],
)
print(asyncio.run(Runner.run(boss, "Shall we buy?", max_turns=3)).final_output)
