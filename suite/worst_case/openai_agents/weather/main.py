"""One agent with one tool."""
from agents import Agent, ModelSettings, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """Returns the weather of a city."""
    return f"{city}: sunny, 21 degrees"


agent = Agent(
    name="Weather",
    instructions="Answer questions about the weather.",
    model="gpt-4o-mini",
    tools=[get_weather],
    model_settings=ModelSettings(parallel_tool_calls=False),
)

if __name__ == "__main__":
    print(Runner.run_sync(agent, "Do I need a coat in Oslo?", max_turns=5).final_output)
