"""A task with an explicit context."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
first = Task(description="Write about bees.", expected_output="A line.", agent=poet)
second = Task(description="Write about wasps.", expected_output="A line.", agent=poet)
third = Task(description="Make the line longer.", expected_output="A long line.", agent=poet, context=[first])
crew = Crew(agents=[poet], tasks=[first, second, third])

if __name__ == "__main__":
    print(crew.kickoff().raw)
