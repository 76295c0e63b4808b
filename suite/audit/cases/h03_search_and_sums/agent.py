"""Looks things up and computes."""
from langchain_core.tools import tool
from langchain_tavily import TavilySearch
from langgraph.prebuilt import create_react_agent


@tool
def add(a: float, b: float) -> float:
    """Adds numbers."""
    return a + b


agent = create_react_agent("openai:gpt-4o", [TavilySearch(max_results=3), add], prompt="You answer questions.")
print(agent.invoke({"messages": [("user", "How many bees are there?")]}, {"recursion_limit": 10}))
