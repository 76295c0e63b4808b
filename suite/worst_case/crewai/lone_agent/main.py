"""An agent that is run without a crew."""
from crewai import Agent
from crewai.tools import tool


@tool
def look(place: str) -> str:
    """Looks at a place."""
    return "a tree"


scout = Agent(role="Scout", goal="Scout", backstory="A scout.", llm="gpt-4o-mini", tools=[look], max_iter=3)
print(scout.kickoff("What is there?").raw)
