"""Callbacks of steps and tasks that ask a model."""
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

small = LLM(model="gpt-4o-mini")


@tool
def look(place: str) -> str:
    """Looks at a place."""
    return "a tree"


def narrate(step):
    print(small.call(f"Narrate: {step}"))


def announce(output):
    print(small.call(f"Announce: {output.raw}"))


scout = Agent(role="Scout", goal="Scout", backstory="A scout.", llm="gpt-4o-mini", tools=[look], max_iter=3, step_callback=narrate)
task = Task(description="Scout the wood.", expected_output="A map.", agent=scout, callback=announce)
print(Crew(agents=[scout], tasks=[task]).kickoff())
