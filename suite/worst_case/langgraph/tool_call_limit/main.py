"""An agent whose tool calls are limited; the model is told so and goes on."""
from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallLimitMiddleware
from langchain_core.tools import tool


@tool
def search(query: str) -> str:
    """Searches the web."""
    return "found"


agent = create_agent(
    "openai:gpt-4o-mini", tools=[search], middleware=[ToolCallLimitMiddleware(run_limit=2, exit_behavior="continue")]
)
agent.invoke({"messages": [("user", "bees")]}, {"recursion_limit": 15})
