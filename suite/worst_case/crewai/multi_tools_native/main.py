"""Two tools and the default limits."""
from crewai import Agent, Crew, Process, Task
from crewai.tools import tool


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies."""
    return a * b


agent = Agent(role="Clerk", goal="Count", backstory="C.", llm="gpt-4o-mini", tools=[add, multiply])
task = Task(description="(1 + 2) * 3?", expected_output="A number.", agent=agent, async_execution=False)
crew = Crew(agents=[agent], tasks=[task], process=Process.sequential)


def run():
    crew.kickoff()


if __name__ == "__main__":
    run()
