"""A crew that is run in a loop."""
from crewai import Agent, Crew, Task


def build():
    writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
    task = Task(description="Write about {topic}.", expected_output="A text.", agent=writer)
    return Crew(agents=[writer], tasks=[task])


def main():
    text = "bees"
    for _ in range(4):
        text = build().kickoff(inputs={"topic": text}).raw
    print(text)


if __name__ == "__main__":
    main()
