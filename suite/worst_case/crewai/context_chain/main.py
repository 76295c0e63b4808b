"""A list of tasks made in a comprehension."""
from crewai import Agent, Crew, Task

agent = Agent(role="Translator", goal="Translate", backstory="T.", llm="gpt-4o-mini")
LANGUAGES = ["French", "German", "Dutch"]
tasks = [Task(description=f"Translate to {lang}.", expected_output="A text.", agent=agent) for lang in LANGUAGES]
tasks.append(Task(description="Join them.", expected_output="A text.", agent=agent, context=tasks[:]))
print(Crew(agents=[agent], tasks=tasks).kickoff())
