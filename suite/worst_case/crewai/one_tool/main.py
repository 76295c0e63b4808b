"""One agent with one tool and a limit of iterations."""
from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("Search")
def search(query: str) -> str:
    """Searches the web."""
    return f"nothing about {query}"


researcher = Agent(role="Researcher", goal="Find facts", backstory="You search.", llm="gpt-4o-mini", tools=[search], max_iter=4)
task = Task(description="Find out about bees.", expected_output="A list.", agent=researcher)
crew = Crew(agents=[researcher], tasks=[task])
print(crew.kickoff())
