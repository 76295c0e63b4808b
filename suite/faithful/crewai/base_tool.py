"""A BaseTool class with an argument schema, whose result is the answer."""
from typing import Type

from crewai import Agent, Crew, Task
from crewai.tools import BaseTool
from pydantic import BaseModel, Field

LLM = "openai/gpt-4o-mini"


class WordInput(BaseModel):
    word: str = Field(..., description="The word")


class Spell(BaseTool):
    name: str = "spell"
    description: str = "Spells a word."
    args_schema: Type[BaseModel] = WordInput

    def _run(self, word: str) -> str:
        return "-".join(word)


clerk = Agent(role="Clerk", goal="Spell", backstory="You spell.", llm=LLM, tools=[Spell(result_as_answer=True)])
job = Task(description="Spell bee.", expected_output="Letters.", agent=clerk)
crew = Crew(agents=[clerk], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
