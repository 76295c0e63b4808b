"""A task with a structured result that the next one receives."""
from crewai import Agent, Crew, Task
from pydantic import BaseModel

LLM = "openai/gpt-4o-mini"


class Fact(BaseModel):
    animal: str
    legs: int


clerk = Agent(role="Clerk", goal="Count", backstory="You count.", llm=LLM)
first = Task(description="How many legs has a bee?", expected_output="A fact.", agent=clerk, output_pydantic=Fact)
second = Task(description="Say it.", expected_output="A line.", agent=clerk)
crew = Crew(agents=[clerk], tasks=[first, second])

if __name__ == "__main__":
    print(crew.kickoff().raw)
