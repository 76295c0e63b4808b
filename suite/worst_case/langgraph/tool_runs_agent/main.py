"""A supervisor whose tools run agents."""
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-4o-mini")


@tool
def create_event(title: str) -> str:
    """Creates an event."""
    return "created"


calendar = create_agent(model, [create_event], system_prompt="You manage the calendar.")


@tool
def schedule(request: str) -> str:
    """Schedules what is asked for."""
    result = calendar.invoke({"messages": [{"role": "user", "content": request}]}, {"recursion_limit": 6})
    return result["messages"][-1].content


supervisor = create_agent(model, [schedule], system_prompt="You are a personal assistant.")
supervisor.invoke({"messages": [("user", "Meet Ann on Monday")]}, {"recursion_limit": 6})
