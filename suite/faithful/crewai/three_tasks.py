"""Three tasks in sequence."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
first = Task(description="Write about bees.", expected_output="A line.", agent=poet)
second = Task(description="Write about wasps.", expected_output="A line.", agent=poet)
third = Task(description="Join the lines.", expected_output="Two lines.", agent=poet)
crew = Crew(agents=[poet], tasks=[first, second, third])

if __name__ == "__main__":
    print(crew.kickoff().raw)
