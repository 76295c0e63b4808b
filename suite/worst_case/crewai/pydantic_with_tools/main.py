"""A typed result of an agent with tools."""
from crewai import Agent, Crew, Task
from crewai.tools import BaseTool
from pydantic import BaseModel


class Blog(BaseModel):
    title: str
    content: str


class Length(BaseTool):
    name: str = "length"
    description: str = "Counts letters."

    def _run(self, text: str) -> str:
        return str(len(text))


writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini", tools=[Length()], max_iter=2)
task = Task(description="Write a blog.", expected_output="A blog.", agent=writer, output_pydantic=Blog)
result = Crew(agents=[writer], tasks=[task]).kickoff()
print(result.raw)
