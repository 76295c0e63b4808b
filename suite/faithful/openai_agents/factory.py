"""Agents that functions and loops make; instructions that a function makes."""
from agents import Agent, Runner

TOPICS = {"bees": "You know bees.", "cars": "You know cars."}


def expert(topic, text):
    return Agent(name=f"{topic} expert", instructions=text, model="m")


def instructions(context, agent):
    return f"Ask the experts on {' and '.join(TOPICS)}."


experts = [expert(topic, text) for topic, text in TOPICS.items()]
desk = Agent(
    name="Desk",
    instructions=instructions,
    model="m",
    tools=[e.as_tool(tool_name=None, tool_description="Knows.") for e in experts],
)

if __name__ == "__main__":
    print(Runner.run_sync(desk, "Do bees drive?").final_output)
