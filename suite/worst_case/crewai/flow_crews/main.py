"""A flow with a crew in each step."""
from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow, listen, start


def crew(what: str) -> Crew:
    worker = Agent(role="Worker", goal=what, backstory="A worker.", llm="gpt-4o-mini")
    return Crew(agents=[worker], tasks=[Task(description=what, expected_output="Work.", agent=worker)])


class Steps(Flow):
    @start()
    def plan(self):
        return crew("Plan").kickoff().raw

    @listen(plan)
    def work(self, plan):
        parts = []
        for part in ["a", "b", "c"]:
            parts.append(crew(f"Do part {part} of {plan}").kickoff().raw)
        return " ".join(parts)


print(Steps().kickoff())
