"""An agent that thinks before its task, at most twice."""
from crewai import Agent, Crew, Task

analyst = Agent(
    role="Analyst",
    goal="Analyze",
    backstory="An analyst.",
    llm="gpt-4o-mini",
    reasoning=True,
    max_reasoning_attempts=2,
    max_iter=2,
)
task = Task(description="Analyze sales.", expected_output="A report.", agent=analyst)
print(Crew(agents=[analyst], tasks=[task]).kickoff())
