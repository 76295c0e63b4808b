"""One tool call."""
from crewai import Agent, Crew, Task
from crewai.tools import tool

LLM = "openai/gpt-4o-mini"


@tool("count")
def count(text: str) -> int:
    """Counts letters."""
    return len(text)


clerk = Agent(role="Clerk", goal="Count", backstory="You count.", llm=LLM, tools=[count])
job = Task(description="Count the letters of bees.", expected_output="A number.", agent=clerk)
crew = Crew(agents=[clerk], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
