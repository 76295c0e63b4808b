"""A run without a limit of turns."""
import asyncio

from agents import Agent, Runner, function_tool


@function_tool
def step(action: str) -> str:
    """Takes a step."""
    return "done"


agent = Agent(name="Worker", instructions="Work until the task is finished.", model="gpt-4o-mini", tools=[step])
print(asyncio.run(Runner.run(agent, "Clean up the house", max_turns=None)).final_output)
