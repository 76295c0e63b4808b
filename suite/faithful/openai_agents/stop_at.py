"""The result of one of the tools is the answer (`stop_at_tool_names`)."""
from agents import Agent, Runner, StopAtTools, function_tool


@function_tool
def find(name: str) -> str:
    """Finds a number."""
    return "4711"


@function_tool
def dial(number: str) -> str:
    """Dials."""
    return f"calling {number}"


agent = Agent(
    name="Phone",
    instructions="Connect people.",
    model="m",
    tools=[find, dial],
    tool_use_behavior=StopAtTools(stop_at_tool_names=["dial"]),
)

if __name__ == "__main__":
    print(Runner.run_sync(agent, "Call Ann").final_output)
