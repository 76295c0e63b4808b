"""A guardrail that lets another agent judge."""
from crewai import Agent, Crew, Task

judge = Agent(role="Judge", goal="Judge texts", backstory="A judge.", llm="gpt-4o-mini")
writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")


def approve(output):
    verdict = judge.kickoff(f"Is this good? {output.raw}").raw
    return (True, output.raw) if verdict == "yes" else (False, verdict)


task = Task(description="Write a word.", expected_output="A word.", agent=writer, guardrail=approve, guardrail_max_retries=1)
print(Crew(agents=[writer], tasks=[task]).kickoff())
