"""A crew that plans first."""
from crewai import Agent, Crew, Task

writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
one = Task(description="Write.", expected_output="A text.", agent=writer)
two = Task(description="Improve.", expected_output="A text.", agent=writer)
print(Crew(agents=[writer], tasks=[one, two], planning=True, planning_llm="gpt-4o-mini").kickoff())
