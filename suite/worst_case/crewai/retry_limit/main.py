"""An agent that is tried again when it fails."""
from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool
def look(place: str) -> str:
    """Looks at a place."""
    return "a tree"


scout = Agent(role="Scout", goal="Scout", backstory="A scout.", llm="gpt-4o-mini", tools=[look], max_iter=2, max_retry_limit=4)
task = Task(description="Scout.", expected_output="A map.", agent=scout)
print(Crew(agents=[scout], tasks=[task]).kickoff())
