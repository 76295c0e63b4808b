"""A nested agent with default limits everywhere."""
from agents import Agent, ModelSettings, Runner, function_tool


@function_tool
def grep(pattern: str) -> str:
    """Searches the code."""
    return "no match"


helper = Agent(
    name="Helper", instructions="Search.", model="gpt-4o-mini", tools=[grep],
    model_settings=ModelSettings(parallel_tool_calls=False),
)
main_agent = Agent(
    name="Main", instructions="Program.", model="gpt-4o-mini",
    tools=[helper.as_tool(tool_name="ask_helper", tool_description="Asks.", max_turns=3)],
    model_settings=ModelSettings(parallel_tool_calls=False),
)
result = Runner.run_sync(main_agent, "Where is the bug?")
