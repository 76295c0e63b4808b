"""Middleware of the framework which asks again where a model fails."""
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, wrap_model_call
from langchain_core.tools import tool


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@wrap_model_call
def ask_twice(request, handler):
    first = handler(request)
    if not first.result[0].content:
        return handler(request)
    return first


agent = create_agent("openai:gpt-4o-mini", tools=[add], middleware=[ask_twice])
agent.invoke({"messages": [("user", "1 + 2")]}, {"recursion_limit": 7})
