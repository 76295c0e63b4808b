"""An agent that may delegate to its coworkers."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

lead = Agent(role="Lead", goal="Get it done", backstory="You ask others.", llm=LLM, allow_delegation=True)
writer = Agent(role="Senior Writer", goal="Write", backstory="You write.", llm=LLM)
job = Task(description="Have a line about bees written.", expected_output="A line.", agent=lead)
crew = Crew(agents=[lead, writer], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
