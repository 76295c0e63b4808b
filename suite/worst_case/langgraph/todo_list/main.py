"""An agent that plans with a list of tasks."""
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.tools import tool


@tool
def run_tests(path: str) -> str:
    """Runs the tests."""
    return "ok"


agent = create_agent("openai:gpt-4o-mini", tools=[run_tests], middleware=[TodoListMiddleware()])
agent.invoke({"messages": [("user", "Refactor it")]}, config={"recursion_limit": 12})
