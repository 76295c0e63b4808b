"""Crews that run until a reviewer accepts, at most three times."""
from crewai import Agent, Crew, Task

coder = Agent(role="Coder", goal="Code", backstory="C.", llm="gpt-4o-mini")
reviewer = Agent(role="Reviewer", goal="Review", backstory="R.", llm="gpt-4o-mini")


def build(feedback: str) -> Crew:
    code = Task(description=f"Code. {feedback}", expected_output="Code.", agent=coder)
    review = Task(description="Review it.", expected_output="ACCEPT or why not.", agent=reviewer, context=[code])
    return Crew(agents=[coder, reviewer], tasks=[code, review])


feedback = ""
for attempt in range(1, 4):
    result = build(feedback).kickoff()
    if "ACCEPT" in str(result):
        break
    feedback = str(result)
