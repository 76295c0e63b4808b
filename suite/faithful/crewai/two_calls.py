"""Two tools in sequence whose names CrewAI changes."""
from crewai import Agent, Crew, Task
from crewai.tools import tool

LLM = "openai/gpt-4o-mini"


@tool("Find Number")
def find(name: str) -> str:
    """Finds a number."""
    return "4711"


@tool
def dial(number: str) -> str:
    """Dials."""
    return f"calling {number}"


clerk = Agent(role="Clerk", goal="Connect people", backstory="You are quick.", llm=LLM, tools=[find, dial], max_iter=9)
job = Task(description="Call Ann.", expected_output="A report.", agent=clerk)
crew = Crew(agents=[clerk], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
