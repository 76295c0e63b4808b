"""A crew that remembers, with a tool and two tasks."""
from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("note")
def note(text: str) -> str:
    """Takes a note."""
    return "noted"


agent = Agent(role="Clerk", goal="Note", backstory="C.", llm="gpt-4o-mini", tools=[note], max_iter=2)
tasks = [Task(description=f"Note {x}.", expected_output="A note.", agent=agent) for x in ("one", "two")]
Crew(agents=[agent], tasks=tasks, memory=True).kickoff()
