"""Tool use that is required and not reset."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """Says the weather."""
    return "sunny"


agent = Agent(
    name="Weather agent",
    instructions="You are a helpful agent.",
    model="gpt-4o-mini",
    tools=[get_weather],
    tool_use_behavior="run_llm_again",
    reset_tool_choice=False,
    model_settings=ModelSettings(tool_choice="required", parallel_tool_calls=False),
)
print(asyncio.run(Runner.run(agent, "Tokyo?", max_turns=6)).final_output)
