"""A crew for each of a list of inputs, twice."""
from crewai import Agent, Crew, Task

agent = Agent(role="Poet", goal="Rhyme", backstory="A poet.", llm="gpt-4o-mini")
task = Task(description="Rhyme on {word}.", expected_output="A rhyme.", agent=agent)
crew = Crew(agents=[agent], tasks=[task])
words = [{"word": "bee"}, {"word": "tree"}]
crew.kickoff_for_each(inputs=words)
for w in words:
    crew.kickoff(inputs=w)
