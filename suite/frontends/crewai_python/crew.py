"""A crew whose agents and tasks stand in YAML, with models and tools in code."""
import os

from crewai import LLM, Agent, Crew, Process, Task
from crewai.project import CrewBase, agent, crew, task
from crewai.tools import BaseTool, tool
from crewai_tools import SerperDevTool

fast = LLM(model=os.getenv("FAST_MODEL", "openai/gpt-4o-mini"), temperature=0.1)


class Archive(BaseTool):
    name: str = "archive"
    description: str = "Searches the archive."

    def _run(self, query: str) -> str:
        return query


@tool("Count words")
def count_words(text: str) -> int:
    """Counts words."""
    return len(text.split())


@CrewBase
class NewsCrew:
    """Looks for news and writes about them."""

    agents_config = "agents.yaml"
    tasks_config = "tasks.yaml"

    @agent
    def scout(self) -> Agent:
        return Agent(config=self.agents_config["scout"], tools=[SerperDevTool(), Archive()], verbose=True)

    @agent
    def author(self) -> Agent:
        return Agent(config=self.agents_config["author"], llm=fast, tools=[count_words], allow_delegation=True)

    @task
    def look(self) -> Task:
        return Task(config=self.tasks_config["look"])

    @task
    def write(self) -> Task:
        return Task(config=self.tasks_config["write"], context=[self.look()], output_file="out.md")

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks, process=Process.sequential, verbose=True)
