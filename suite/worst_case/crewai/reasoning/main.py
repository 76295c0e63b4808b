"""An agent that reasons first."""
from crewai import Agent, Crew, Task

thinker = Agent(role="Thinker", goal="Think", backstory="A thinker.", llm="gpt-4o-mini", reasoning=True, max_reasoning_attempts=2)
task = Task(description="Think.", expected_output="A thought.", agent=thinker)
print(Crew(agents=[thinker], tasks=[task]).kickoff())
