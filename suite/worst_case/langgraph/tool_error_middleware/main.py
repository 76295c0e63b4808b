"""Retries of failing tools and of failing model calls."""
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool


@tool
def database(query: str) -> str:
    """Queries the database."""
    raise ConnectionError("no connection")


agent = create_agent(
    "openai:gpt-4o-mini",
    tools=[database],
    middleware=[
        ToolRetryMiddleware(max_retries=2, initial_delay=0.01),
        ModelRetryMiddleware(max_retries=2, initial_delay=0.01),
    ],
)
agent.invoke({"messages": [{"role": "user", "content": "Who bought it?"}]}, {"recursion_limit": 9})
