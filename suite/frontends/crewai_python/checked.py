"""A crew whose results are looked at, by rules and by code, some of which is not followed; whose tasks are planned; and what adds
calls that are not compiled."""
import re

from crewai import Agent, Crew, Task


def has_number(output):
    if len(output.raw) < 4:
        return (False, f"`{output.raw}` is too short")
    return (True, output.raw.strip())


def no_names(output):
    found = re.findall(r"[A-Z]\w+", output.raw)
    return (not found, found)


class Desk:
    def polite(self, output):
        return ("please" in output.raw, "say please")

    def crew(self, extra):
        clerk = Agent(role="Clerk", goal="Count.", backstory="You count.", llm="m", reasoning=True)
        count = Task(description="Count.", expected_output="A number.", agent=clerk, guardrail=has_number)
        letter = Task(
            description="Write.",
            expected_output="A letter.",
            agent=clerk,
            guardrails=["No figures.", no_names, self.polite],
            guardrail_max_retries=1,
        )
        last = Task(description="Sign.", expected_output="A name.", agent=clerk, human_input=True, guardrail=extra)
        return Crew(agents=[clerk], tasks=[count, letter, last], planning=True, memory=True)


if __name__ == "__main__":
    print(Desk().crew(input()).kickoff())
