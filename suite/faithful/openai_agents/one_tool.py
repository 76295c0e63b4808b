"""A tool is called once."""
from agents import Agent, Runner, function_tool


@function_tool
def weather(city: str) -> str:
    """Says what the weather is like."""
    return f"It rains in {city}."


agent = Agent(name="Guide", instructions="Look it up.", model="m", tools=[weather])

if __name__ == "__main__":
    print(Runner.run_sync(agent, "Do I need a coat in Bonn?").final_output)
