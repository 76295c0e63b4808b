"""Agents and tasks made by functions and loops."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

TOPICS = {"bees": "hum", "cats": "purr"}


def expert(topic, verb):
    return Agent(role=f"{topic.title()} expert", goal=f"Say how they {verb}", backstory="You listen.", llm=LLM)


experts = [expert(topic, verb) for topic, verb in TOPICS.items()]
tasks = []
for who, topic in zip(experts, TOPICS):
    tasks.append(Task(description=f"Describe {topic}.", expected_output="A line.", agent=who))
crew = Crew(agents=experts, tasks=tasks)

if __name__ == "__main__":
    print(crew.kickoff().raw)
