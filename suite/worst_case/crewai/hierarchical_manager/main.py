"""A manager agent of its own, and two tasks."""
from crewai import Agent, Crew, Process, Task

researcher = Agent(role="Researcher", goal="Research", backstory="R.", llm="gpt-4o-mini", max_iter=2)
writer = Agent(role="Writer", goal="Write", backstory="W.", llm="gpt-4o-mini", max_iter=2)
manager = Agent(
    role="Project Manager", goal="Manage", backstory="M.", llm="gpt-4o-mini", allow_delegation=True, max_iter=3
)
task = Task(description="Write about bees.", expected_output="An article.")
crew = Crew(
    agents=[researcher, writer], tasks=[task], manager_agent=manager, process=Process.hierarchical
)
print(crew.kickoff())
