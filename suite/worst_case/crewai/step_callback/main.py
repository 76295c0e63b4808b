"""A callback after each step that asks a model."""
from crewai import Agent, Crew, LLM, Task
from crewai.tools import tool

judge = LLM(model="gpt-4o-mini")


@tool("look")
def look(place: str) -> str:
    """Looks there."""
    return "nothing"


def watch(step):
    judge.call(f"Is this step good? {step}")


agent = Agent(
    role="Scout", goal="Find", backstory="S.", llm="gpt-4o-mini", tools=[look], max_iter=2, step_callback=watch
)
task = Task(description="Find it.", expected_output="It.", agent=agent)
Crew(agents=[agent], tasks=[task]).kickoff()
