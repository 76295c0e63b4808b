"""Two agents who may delegate to each other."""
from crewai import Agent, Crew, Task

one = Agent(role="One", goal="Work", backstory="First.", llm="gpt-4o-mini", allow_delegation=True, max_iter=3)
two = Agent(role="Two", goal="Work", backstory="Second.", llm="gpt-4o-mini", max_iter=2)
task = Task(description="Work.", expected_output="Work.", agent=one)
print(Crew(agents=[one, two], tasks=[task]).kickoff())
