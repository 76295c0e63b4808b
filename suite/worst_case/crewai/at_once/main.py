"""Crews that run at the same time."""
import asyncio

from crewai import Agent, Crew, Task


def crew(topic):
    writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
    return Crew(agents=[writer], tasks=[Task(description=topic, expected_output="A text.", agent=writer)])


async def main():
    results = await asyncio.gather(*(crew(t).kickoff_async() for t in ("bees", "cars")))
    print(len(results))


asyncio.run(main())
