"""Tools of a task that replace those of its agent, and Markdown output."""
from crewai import Agent, Crew, Task
from crewai.tools import tool

LLM = "openai/gpt-4o-mini"


@tool("count")
def count(text: str) -> int:
    """Counts letters."""
    return len(text)


@tool("shout")
def shout(text: str) -> str:
    """Says it loudly."""
    return text.upper()


clerk = Agent(role="Clerk", goal="Count", backstory="You count.", llm=LLM, tools=[count])
first = Task(description="Shout bees.", expected_output="A word.", agent=clerk, tools=[shout])
second = Task(description="Count it.", expected_output="A number.", agent=clerk, markdown=True)
crew = Crew(agents=[clerk], tasks=[first, second])

if __name__ == "__main__":
    print(crew.kickoff().raw)
