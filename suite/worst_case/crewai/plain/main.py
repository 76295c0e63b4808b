"""Two agents, two tasks, no tools."""
from crewai import Agent, Crew, Process, Task

writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
editor = Agent(role="Editor", goal="Edit", backstory="An editor.", llm="gpt-4o-mini")
draft = Task(description="Write about {topic}.", expected_output="A text.", agent=writer)
edit = Task(description="Edit it.", expected_output="A text.", agent=editor)
crew = Crew(agents=[writer, editor], tasks=[draft, edit], process=Process.sequential)
print(crew.kickoff(inputs={"topic": "bees"}))
