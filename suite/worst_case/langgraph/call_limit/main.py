"""An agent whose model calls are limited for each run."""
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_core.tools import tool


@tool
def look(place: str) -> str:
    """Looks there."""
    return "nothing"


agent = create_agent(
    model="openai:gpt-4o-mini",
    tools=[look],
    middleware=[ModelCallLimitMiddleware(run_limit=4, exit_behavior="end")],
)
for place in ("kitchen", "garden"):
    agent.invoke({"messages": [("user", f"Look in the {place}")]})
