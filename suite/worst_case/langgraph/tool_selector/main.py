"""A middleware that lets a model choose the tools first."""
from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolSelectorMiddleware
from langchain_core.tools import tool


@tool
def read(page: int) -> str:
    """Reads a page."""
    return "page"


@tool
def write(page: int) -> str:
    """Writes a page."""
    return "written"


agent = create_agent(
    "openai:gpt-4o-mini", tools=[read, write], middleware=[LLMToolSelectorMiddleware(model="openai:gpt-4o-mini", max_tools=1)]
)
agent.invoke({"messages": [("user", "Copy page 1 to 2")]}, {"recursion_limit": 9})
