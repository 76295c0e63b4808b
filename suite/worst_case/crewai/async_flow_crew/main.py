"""Two crews at the same time."""
import asyncio

from crewai import Agent, Crew, Task


def crew(word):
    agent = Agent(role="Poet", goal="Rhyme", backstory="P.", llm="gpt-4o-mini")
    return Crew(agents=[agent], tasks=[Task(description=f"Rhyme on {word}.", expected_output="R.", agent=agent)])


async def main():
    print(await asyncio.gather(crew("bee").kickoff_async(), crew("tea").akickoff()))


asyncio.run(main())
