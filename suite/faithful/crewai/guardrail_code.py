"""A guardrail in Python that changes a result and asks again."""
from typing import Any, Tuple

from crewai import Agent, Crew, Task
from crewai.tasks.task_output import TaskOutput

LLM = "openai/gpt-4o-mini"
MOST = 12


def short(output: TaskOutput) -> Tuple[bool, Any]:
    text = output.raw.strip()
    if len(text) > MOST:
        return False, f"{len(text)} characters are more than {MOST}"
    if "bee" not in text.lower():
        return (False, "say something of bees")
    return True, text.upper()


poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
plan = Task(description="Plan a line.", expected_output="A plan.", agent=poet)
line = Task(description="Write the line.", expected_output="A line.", agent=poet, guardrail=short)
mark = Task(description="Mark it.", expected_output="A number.", agent=poet, guardrails=[lambda out: (out.raw != "none", out.raw)])
crew = Crew(agents=[poet], tasks=[plan, line, mark])

if __name__ == "__main__":
    print(crew.kickoff().raw)
