"""The result of the first tool is the answer (`stop_on_first_tool`)."""
from agents import Agent, Runner, function_tool


@function_tool
def price(item: str) -> str:
    """Says what something costs."""
    return f"{item}: 3 euros"


agent = Agent(name="Shop", instructions="Name the price.", model="m", tools=[price], tool_use_behavior="stop_on_first_tool")

if __name__ == "__main__":
    print(Runner.run_sync(agent, "A pear?").final_output)
