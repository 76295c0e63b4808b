"""What a tool gives is the agent's answer: as its decorator says, as its class says, as who makes it says."""
from crewai import Agent, Crew, Task
from crewai.tools import BaseTool, tool


@tool("look up", result_as_answer=True)
def look_up(word: str) -> str:
    """Looks a word up."""
    return word


class Spell(BaseTool):
    name: str = "spell"
    description: str = "Spells a word."
    result_as_answer: bool = True

    def _run(self, word: str) -> str:
        return "-".join(word)


class Count(BaseTool):
    name: str = "count"
    description: str = "Counts letters."

    def _run(self, word: str) -> str:
        return str(len(word))


clerk = Agent(
    role="Clerk",
    goal="Look up",
    backstory="You look things up.",
    llm="openai/gpt-4o-mini",
    tools=[look_up, Spell(), Count(), Count(name="count_all", result_as_answer=True)],
)
crew = Crew(agents=[clerk], tasks=[Task(description="What is a bee?", expected_output="A line.", agent=clerk)])
