"""A guardrail that no answer passes."""
from crewai import Agent, Crew, Task


def never(output):
    return (False, "no: " + output.raw)


poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm="openai/gpt-4o-mini")
job = Task(description="Write about bees.", expected_output="A line.", agent=poet, guardrails=[never], guardrail_max_retries=1)
crew = Crew(agents=[poet], tasks=[job])

if __name__ == "__main__":
    try:
        print(crew.kickoff().raw)
    except Exception as error:
        print(error)
