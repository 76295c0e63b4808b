"""A hierarchical crew with a manager."""
from crewai import Agent, Crew, Process, Task
from crewai.tools import tool

LLM = "openai/gpt-4o-mini"


@tool("count")
def count(text: str) -> int:
    """Counts letters."""
    return len(text)


clerk = Agent(role="Clerk", goal="Count", backstory="You count.", llm=LLM, tools=[count])
poet = Agent(role="Poet", goal="Write", backstory="You write.", llm=LLM)
first = Task(description="Count the letters of bees.", expected_output="A number.", agent=clerk)
second = Task(description="Write about that number.", expected_output="A line.")
crew = Crew(agents=[clerk, poet], tasks=[first, second], process=Process.hierarchical, manager_llm="openai/gpt-4o")

if __name__ == "__main__":
    print(crew.kickoff().raw)
