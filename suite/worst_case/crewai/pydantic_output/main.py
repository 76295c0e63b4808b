"""A task with a typed result."""
from crewai import Agent, Crew, Task
from pydantic import BaseModel


class Report(BaseModel):
    title: str
    score: int


analyst = Agent(role="Analyst", goal="Analyze", backstory="An analyst.", llm="gpt-4o-mini")
task = Task(description="Analyze the market.", expected_output="A report.", agent=analyst, output_pydantic=Report)
print(Crew(agents=[analyst], tasks=[task]).kickoff().pydantic)
