"""A tool that asks a model, and a cache that is off."""
from crewai import Agent, Crew, LLM, Task
from crewai.tools import BaseTool
from pydantic import BaseModel, Field


class Question(BaseModel):
    question: str = Field(description="What to ask.")


class Expert(BaseTool):
    name: str = "expert"
    description: str = "Asks an expert."
    args_schema: type[BaseModel] = Question

    def _run(self, question: str) -> str:
        llm = LLM(model="gpt-4o-mini", temperature=0)
        return llm.call([{"role": "user", "content": question}])


agent = Agent(role="Student", goal="Learn", backstory="S.", llm="gpt-4o-mini", tools=[Expert()], max_iter=3)
task = Task(description="Learn.", expected_output="Notes.", agent=agent)
print(Crew(agents=[agent], tasks=[task], cache=False).kickoff())
