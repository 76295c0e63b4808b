"""A model of the project's own, which asks twice."""
from crewai import LLM, Agent, BaseLLM, Crew, Task

inner = LLM(model="gpt-4o-mini")


class Careful(BaseLLM):
    def __init__(self):
        super().__init__(model="careful")

    def call(self, messages, *args, **kwargs):
        first = inner.call(messages)
        return inner.call([{"role": "user", "content": f"Check: {first}"}])


writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm=Careful())
print(Crew(agents=[writer], tasks=[Task(description="Write.", expected_output="A text.", agent=writer)]).kickoff())
