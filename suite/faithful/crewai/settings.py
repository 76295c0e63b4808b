"""A model with settings."""
from crewai import LLM, Agent, Crew, Task

cool = LLM(model="openai/gpt-4o-mini", temperature=0.25, max_tokens=99)
poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=cool)
job = Task(description="Write about bees.", expected_output="A line.", agent=poet)
crew = Crew(agents=[poet], tasks=[job])

if __name__ == "__main__":
    print(crew.kickoff().raw)
