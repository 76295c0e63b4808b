"""Tasks that are carried out beside each other."""
from crewai import Agent, Crew, Task


def writer(name):
    return Agent(role=name, goal="Write", backstory="A writer.", llm="gpt-4o-mini")


one = Task(description="One.", expected_output="A text.", agent=writer("One"), async_execution=True)
two = Task(description="Two.", expected_output="A text.", agent=writer("Two"), async_execution=True)
end = Task(description="Join.", expected_output="A text.", agent=writer("Three"), context=[one, two])
print(Crew(agents=[one.agent, two.agent, end.agent], tasks=[one, two, end]).kickoff())
