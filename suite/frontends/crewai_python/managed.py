"""A crew under a manager, made by a function in a loop, and what is not known of it."""
from crewai import Agent, Crew, Process, Task

ROLES = {"Reader": "Read.", "Judge": "Judge."}


def build(subject, strict):
    team = [Agent(role=role, goal=goal, backstory=f"You know {subject}.") for role, goal in ROLES.items()]
    if strict:
        team.append(Agent(role="Critic", goal="Doubt.", backstory="You doubt."))
    job = Task(description=f"Decide about {subject}.", expected_output="Yes or no.", async_execution=False)
    return Crew(agents=team, tasks=[job], process=Process.hierarchical, manager_llm="openai/gpt-4o")


if __name__ == "__main__":
    print(build("bees", input() == "y").kickoff())
