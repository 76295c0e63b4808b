"""Hooks of an agent that let another one check what a tool said."""
import asyncio

from agents import Agent, AgentHooks, ModelSettings, RunContextWrapper, Runner, Tool, function_tool

checker = Agent(name="Checker", instructions="Check it.", model="gpt-4o-mini")


class CheckHooks(AgentHooks):
    async def on_tool_end(self, context: RunContextWrapper, agent: Agent, tool: Tool, result: str) -> None:
        await Runner.run(checker, f"{tool.name} said {result}")


@function_tool
def random_number(max: int) -> int:
    """Generate a random number."""
    return max


agent = Agent(
    name="Start Agent",
    instructions="Generate a random number.",
    model="gpt-4o-mini",
    tools=[random_number],
    hooks=CheckHooks(),
    model_settings=ModelSettings(parallel_tool_calls=False),
)
asyncio.run(Runner.run(agent, "A number below 250", max_turns=4))
