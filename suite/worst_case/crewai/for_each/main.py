"""A crew that is run for each of several inputs."""
from crewai import Agent, Crew, Task

writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
task = Task(description="Write about {topic}.", expected_output="A text.", agent=writer)
crew = Crew(agents=[writer], tasks=[task])
print(crew.kickoff_for_each(inputs=[{"topic": "bees"}, {"topic": "cars"}, {"topic": "seas"}]))
