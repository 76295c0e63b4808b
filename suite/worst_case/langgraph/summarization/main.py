"""A conversation that is summarized when it gets long."""
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.tools import tool


@tool
def read(page: int) -> str:
    """Reads a page."""
    return "long " * 300


agent = create_agent(
    "openai:gpt-4o-mini",
    tools=[read],
    middleware=[SummarizationMiddleware(model="openai:gpt-4o-mini", trigger=("messages", 3), keep=("messages", 1))],
)
agent.invoke({"messages": [("user", "Read the book")]}, {"recursion_limit": 12})
