"""A wrapper of tool calls that lets a model rewrite the result."""
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool

small = init_chat_model("openai:gpt-4o-mini")


@tool
def page(url: str) -> str:
    """Reads a page."""
    return "long text"


@wrap_tool_call
def shorten(request, handler):
    result = handler(request)
    result.content = small.invoke(f"Shorten: {result.content}").content
    return result


agent = create_agent("openai:gpt-4o-mini", tools=[page], middleware=[shorten])
agent.invoke({"messages": [("user", "Read example.org")]}, {"recursion_limit": 8})
