"""A task that is done only if a function says so."""
from crewai import LLM, Agent, Crew, Task
from crewai.tasks.conditional_task import ConditionalTask

llm = LLM(model="gpt-4o-mini")


def needs_more(output):
    return "yes" != llm.call(f"Is this enough? {output.raw}")


writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
one = Task(description="Write.", expected_output="A text.", agent=writer)
more = ConditionalTask(description="Write more.", expected_output="A text.", agent=writer, condition=needs_more)
end = Task(description="Finish.", expected_output="A text.", agent=writer)
print(Crew(agents=[writer], tasks=[one, more, end]).kickoff())
