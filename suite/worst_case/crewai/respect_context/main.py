"""An agent with a date, retries and a limit of requests a minute."""
from crewai import Agent, Crew, Task
from crewai.tools import tool


@tool("fails")
def fails(text: str) -> str:
    """Fails."""
    raise ValueError("no")


agent = Agent(
    role="Clerk", goal="Do", backstory="C.", llm="gpt-4o-mini", tools=[fails], max_iter=3, max_retry_limit=1,
    inject_date=True, use_system_prompt=False, respect_context_window=False,
)
print(Crew(agents=[agent], tasks=[Task(description="Do.", expected_output="It.", agent=agent)]).kickoff())
