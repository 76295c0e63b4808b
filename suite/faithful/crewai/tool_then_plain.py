"""An agent with a tool, then one without."""
from crewai import Agent, Crew, Task
from crewai.tools import tool

LLM = "openai/gpt-4o-mini"


@tool("weather")
def weather(city: str) -> str:
    """Says what the weather is like."""
    return f"It rains in {city}."


guide = Agent(role="Guide", goal="Look it up", backstory="You know where.", llm=LLM, tools=[weather])
host = Agent(role="Host", goal="Advise", backstory="You care.", llm=LLM)
look = Task(description="Look up the weather in Bonn.", expected_output="The weather.", agent=guide)
advise = Task(description="Say what to wear.", expected_output="Advice.", agent=host)
crew = Crew(agents=[guide, host], tasks=[look, advise])

if __name__ == "__main__":
    print(crew.kickoff().raw)
