"""Functions before and after a crew, one of which asks a model."""
from crewai import LLM, Agent, Crew, Task
from crewai.project import CrewBase, agent, before_kickoff, crew, task


@CrewBase
class Blog:
    @before_kickoff
    def choose(self, inputs):
        return {"topic": LLM(model="gpt-4o-mini").call("Name a topic.")}

    @agent
    def writer(self) -> Agent:
        return Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")

    @task
    def post(self) -> Task:
        return Task(description="Write about {topic}.", expected_output="A post.", agent=self.writer())

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks)


print(Blog().crew().kickoff(inputs={"topic": "bees"}))
