"""One agent, one task."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
job = Task(description="Write about bees.", expected_output="A line.", agent=poet)
crew = Crew(agents=[poet], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
