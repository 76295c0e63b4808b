"""The framework under another name."""
import crewai as c


@c.tools.tool("look")
def look(place: str) -> str:
    """Looks at a place."""
    return "a tree"


Worker = c.Agent
scout = Worker(role="Scout", goal="Scout", backstory="A scout.", llm="gpt-4o-mini", tools=[look], max_iter=2)
print(c.Crew(agents=[scout], tasks=[c.Task(description="Scout.", expected_output="A map.", agent=scout)]).kickoff())
