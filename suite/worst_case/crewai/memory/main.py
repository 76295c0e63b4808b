"""A crew that remembers."""
from crewai import Agent, Crew, Task

writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
task = Task(description="Write.", expected_output="A text.", agent=writer)
print(Crew(agents=[writer], tasks=[task], memory=True).kickoff())
