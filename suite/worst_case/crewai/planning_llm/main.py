"""Planning with a model of its own, two tasks."""
from crewai import Agent, Crew, Process, Task

a = Agent(role="A", goal="Do A", backstory="A.", llm="gpt-4o-mini")
b = Agent(role="B", goal="Do B", backstory="B.", llm="gpt-4o-mini")
tasks = [
    Task(description="Do A.", expected_output="A.", agent=a),
    Task(description="Do B.", expected_output="B.", agent=b),
]
my_crew = Crew(agents=[a, b], tasks=tasks, process=Process.sequential, planning=True, planning_llm="gpt-4o")
print(my_crew.kickoff())
