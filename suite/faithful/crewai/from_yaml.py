"""A `@CrewBase` crew with `agents.yaml` and `tasks.yaml`."""
from crewai import Agent, Crew, Process, Task
from crewai.project import CrewBase, agent, crew, task


@CrewBase
class News:
    """Looks for news and writes them down."""

    agents_config = "config/agents.yaml"
    tasks_config = "config/tasks.yaml"

    @agent
    def scout(self) -> Agent:
        return Agent(config=self.agents_config["scout"])

    @agent
    def author(self) -> Agent:
        return Agent(config=self.agents_config["author"])

    @task
    def look(self) -> Task:
        return Task(config=self.tasks_config["look"])

    @task
    def sort(self) -> Task:
        return Task(config=self.tasks_config["sort"])

    @task
    def write(self) -> Task:
        return Task(config=self.tasks_config["write"])

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks, process=Process.sequential)


if __name__ == "__main__":
    print(News().crew().kickoff(inputs={"topic": "bees"}).raw)
