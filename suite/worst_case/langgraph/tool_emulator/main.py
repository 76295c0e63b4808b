"""Tools whose results a model makes up."""
from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolEmulator
from langchain_core.tools import tool


@tool
def send_email(to: str, text: str) -> str:
    """Sends an email."""
    return "sent"


agent = create_agent("openai:gpt-4o-mini", tools=[send_email], middleware=[LLMToolEmulator(model="openai:gpt-4o-mini")])
agent.invoke({"messages": [("user", "Write to Ann")]}, {"recursion_limit": 9})
