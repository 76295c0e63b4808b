"""A guardrail that is a function, with retries."""
from crewai import Agent, Crew, Task


def short(output):
    if len(output.raw) > 3:
        return (False, "Make it shorter.")
    return (True, output.raw)


writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
task = Task(description="Write a word.", expected_output="A word.", agent=writer, guardrail=short, guardrail_max_retries=2)
print(Crew(agents=[writer], tasks=[task]).kickoff())
