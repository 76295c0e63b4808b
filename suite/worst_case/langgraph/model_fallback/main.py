"""An agent with a second and a third model."""
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_core.tools import tool


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


agent = create_agent(
    "openai:gpt-4o",
    tools=[add],
    middleware=[ModelFallbackMiddleware("openai:gpt-4o-mini", "openai:gpt-4.1-mini")],
)
print(agent.invoke({"messages": [("user", "1 + 2")]}, {"recursion_limit": 7})["messages"][-1].content)
