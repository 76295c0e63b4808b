"""Placeholders in roles and tasks."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet of {topic}", goal="Write about {topic}", backstory="You know {topic}.", llm=LLM)
job = Task(description="Write about {topic}.", expected_output="A line on {topic}.", agent=poet)
crew = Crew(agents=[poet], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff(inputs={"topic": "bees"}).raw)
