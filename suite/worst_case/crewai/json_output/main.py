"""A task with a result that is JSON, of an agent with a tool."""
from crewai import Agent, Crew, Task
from crewai.tools import tool
from pydantic import BaseModel


class Price(BaseModel):
    item: str
    euros: float


@tool
def price(item: str) -> str:
    """Says what something costs."""
    return "three euros"


clerk = Agent(role="Clerk", goal="Name prices", backstory="A clerk.", llm="gpt-4o-mini", tools=[price], max_iter=3)
task = Task(description="What is a pear?", expected_output="A price.", agent=clerk, output_json=Price)
print(Crew(agents=[clerk], tasks=[task]).kickoff())
