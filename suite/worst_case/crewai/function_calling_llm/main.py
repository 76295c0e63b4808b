"""A tool whose calls another model makes."""
from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("search")
def search(query: str) -> str:
    """Searches."""
    return "found"


agent = Agent(
    role="Scout",
    goal="Find",
    backstory="A scout.",
    llm="gpt-4o-mini",
    function_calling_llm="gpt-4o-mini",
    tools=[search],
    max_iter=3,
)
task = Task(description="Find it.", expected_output="It.", agent=agent)
print(Crew(agents=[agent], tasks=[task], function_calling_llm="gpt-4o-mini").kickoff())
