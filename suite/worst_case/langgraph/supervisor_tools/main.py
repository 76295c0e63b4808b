"""Subagents as tools of a main agent."""
from langchain.agents import create_agent
from langchain.tools import tool


@tool
def read_calendar(day: str) -> str:
    """Reads the calendar."""
    return "free"


calendar_agent = create_agent("openai:gpt-4o-mini", tools=[read_calendar], system_prompt="You plan meetings.")


@tool
def schedule_event(request: str) -> str:
    """Schedules calendar events."""
    result = calendar_agent.invoke({"messages": [{"role": "user", "content": request}]}, {"recursion_limit": 5})
    return result["messages"][-1].text


supervisor = create_agent("openai:gpt-4o-mini", tools=[schedule_event], system_prompt="You are an assistant.")
query = "Meet Ann on Monday"
for step in supervisor.stream({"messages": [{"role": "user", "content": query}]}, {"recursion_limit": 7}):
    for update in step.values():
        print(update)
