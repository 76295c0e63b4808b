"""A manager who delegates."""
from crewai import Agent, Crew, Process, Task

cook = Agent(role="Cook", goal="Cook", backstory="A cook.", llm="gpt-4o-mini", max_iter=2)
baker = Agent(role="Baker", goal="Bake", backstory="A baker.", llm="gpt-4o-mini", max_iter=2)
dinner = Task(description="Make dinner.", expected_output="A dinner.")
crew = Crew(agents=[cook, baker], tasks=[dinner], process=Process.hierarchical, manager_llm="gpt-4o-mini")
print(crew.kickoff())
