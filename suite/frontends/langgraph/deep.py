"""An agent that has others work, each in a conversation of its own."""

from deepagents import create_deep_agent
from langchain_core.tools import tool


@tool
def look_up(term: str) -> str:
    """Looks a term up."""
    return ""


checker = {
    "name": "checker",
    "description": "Checks facts.",
    "system_prompt": "Check what you are told.",
    "tools": [look_up],
    "model": "openai:gpt-4.1-mini",
}

agent = create_deep_agent(
    model="anthropic:claude-sonnet-4-5",
    tools=[look_up],
    system_prompt="Write about the topic.",
    subagents=[checker],
).with_config({"recursion_limit": 9})
