"""A tool that is offered only if an agent agrees."""
import asyncio

from agents import Agent, Runner, function_tool

gate = Agent(name="Gate", instructions="May the tool be used? yes or no", model="gpt-4o-mini")


async def allowed(context, agent) -> bool:
    answer = await Runner.run(gate, "May it be used?")
    return "yes" in answer.final_output


@function_tool(is_enabled=allowed)
def delete(path: str) -> str:
    """Deletes a file."""
    return "deleted"


@function_tool
def show(path: str) -> str:
    """Shows a file."""
    return "text"


agent = Agent(name="Files", instructions="Tidy up.", model="gpt-4o-mini", tools=[delete, show])
print(asyncio.run(Runner.run(agent, "Tidy up", max_turns=3)).final_output)
