"""A tool that runs a crew of its own."""
from crewai import Agent, Crew, Task
from crewai.tools import BaseTool


def background(topic: str) -> str:
    historian = Agent(role="Historian", goal="Tell history", backstory="Old.", llm="gpt-4o-mini")
    story = Task(description=f"History of {topic}", expected_output="A text.", agent=historian)
    return Crew(agents=[historian], tasks=[story]).kickoff().raw


class History(BaseTool):
    name: str = "history"
    description: str = "Tells the history of a topic."

    def _run(self, topic: str) -> str:
        return background(topic)


guide = Agent(role="Guide", goal="Guide", backstory="A guide.", llm="gpt-4o-mini", tools=[History()], max_iter=3)
tour = Task(description="Tell of Rome.", expected_output="A tour.", agent=guide)
print(Crew(agents=[guide], tasks=[tour]).kickoff())
