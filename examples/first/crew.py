from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("search")
def search(query: str) -> str:
    """Searches the web."""
    return query


scout = Agent(role="Scout", goal="Find news about {topic}", backstory="Well read.", llm="gpt-4.1-mini", tools=[search])
news = Task(description="Find three news items about {topic}.", expected_output="A list.", agent=scout)

Crew(agents=[scout], tasks=[news]).kickoff(inputs={"subject": "bees"})
