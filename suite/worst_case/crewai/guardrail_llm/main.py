"""A task with a guardrail in words, and one in code."""
from crewai import Agent, Crew, Task

writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
task = Task(
    description="Write a post.",
    expected_output="A post.",
    agent=writer,
    guardrail="The post has fewer than 100 words and names no person.",
    guardrail_max_retries=2,
)
print(Crew(agents=[writer], tasks=[task]).kickoff())
