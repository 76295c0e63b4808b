"""Tools whose names promise more than they do."""
from langchain_core.tools import tool
from langchain_tavily import TavilySearch
from langgraph.prebuilt import create_react_agent

COMMANDS = {"list": "ls", "remove": "rm"}
TEMPLATE = "Dear {name},\n\n{text}\n"


@tool
def execute_command(task: str) -> str:
    """Says which command does a task."""
    return COMMANDS.get(task, "none")


@tool
def send_email(name: str, text: str) -> str:
    """Lays out a letter."""
    return TEMPLATE.format(name=name, text=text)


agent = create_react_agent("openai:gpt-4o", [TavilySearch(), execute_command, send_email], prompt="You help with letters.")
print(agent.invoke({"messages": [("user", "A letter to Bo, please.")]}, {"recursion_limit": 10}))
