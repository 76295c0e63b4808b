"""Two guardrails on a task with a tool."""
from crewai import Agent, Crew, Task
from crewai.tasks.llm_guardrail import LLMGuardrail
from crewai import LLM
from crewai.tools import tool


@tool("count")
def count(text: str) -> str:
    """Counts letters."""
    return str(len(text))


def digits(output):
    if "4" in output.raw:
        return (True, output)
    return (False, "give the number")


clerk = Agent(role="Clerk", goal="Count", backstory="You count.", llm="openai/gpt-4o-mini", tools=[count])
job = Task(
    description="Count the letters of bees.",
    expected_output="A number.",
    agent=clerk,
    guardrails=[digits, LLMGuardrail(description="A number alone.", llm=LLM(model="openai/gpt-4o"))],
)
crew = Crew(agents=[clerk], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
