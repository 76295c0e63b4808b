"""Two asynchronous tasks, and one with both as context."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
others = [Agent(role=role, goal="Write", backstory="You rhyme.", llm=LLM) for role in ("Bard", "Scald")]
title = Task(description="Find a subject.", expected_output="A word.", agent=poet)
first = Task(description="Write about bees.", expected_output="A line.", agent=others[0], async_execution=True)
second = Task(description="Write about ants.", expected_output="A line.", agent=others[1], async_execution=True, context=[title])
both = Task(description="Join them.", expected_output="Two lines.", agent=poet)
crew = Crew(agents=[poet, *others], tasks=[title, first, second, both])

if __name__ == "__main__":
    print(crew.kickoff().raw)
