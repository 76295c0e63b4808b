"""A crew of CrewAI that is started with a misspelled argument."""

from crewai import Agent, Crew, Process, Task

researcher = Agent(
    role="Researcher",
    goal="Find what is known about {topic}",
    backstory="You have read everything.",
    llm="gpt-4.1-mini",
    max_iter=5,
)
writer = Agent(
    role="Writer",
    goal="Write a paragraph that a child understands",
    backstory="You write for children.",
    llm="gpt-4.1-mini",
    max_iter=3,
)
research = Task(description="Collect facts about {topic}", expected_output="A list", agent=researcher)
paragraph = Task(description="Write a paragraph", expected_output="A paragraph", agent=writer, context=[research])
crew = Crew(agents=[researcher, writer], tasks=[research, paragraph], process=Process.sequential)
crew.kickoff(input={"topic": "bees"})
