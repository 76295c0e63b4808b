"""An agent that stops at its first tool."""
from agents import Agent, ModelSettings, Runner, function_tool


@function_tool
def price(item: str) -> int:
    """Says the price."""
    return 3


agent = Agent(
    name="Shop",
    instructions="Say the price.",
    model="gpt-4o-mini",
    tools=[price],
    tool_use_behavior="stop_on_first_tool",
    model_settings=ModelSettings(tool_choice="required"),
)
print(Runner.run_sync(agent, "A pear?").final_output)
