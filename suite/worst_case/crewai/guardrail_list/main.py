"""A task with several guardrails one after another."""
from typing import Any, Tuple

from crewai import Agent, Crew, Task, TaskOutput


def not_empty(result: TaskOutput) -> Tuple[bool, Any]:
    return (bool(result.raw.strip()), result.raw)


def short(result: TaskOutput) -> Tuple[bool, Any]:
    if len(result.raw.split()) > 3:
        return (False, "Too long")
    return (True, result.raw)


writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
task = Task(
    description="Write.", expected_output="A post.", agent=writer, guardrails=[not_empty, short], guardrail_max_retries=2
)
print(Crew(agents=[writer], tasks=[task]).kickoff())
