"""A guardrail in words."""
from crewai import Agent, Crew, Task

writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
task = Task(
    description="Write a sentence.",
    expected_output="A sentence.",
    agent=writer,
    guardrail="The text must be in French and have fewer than ten words.",
    guardrail_max_retries=2,
)
print(Crew(agents=[writer], tasks=[task]).kickoff())
