"""A system prompt that another model writes."""
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

writer = ChatOpenAI(model="gpt-4o-mini", temperature=0)


@tool
def weather(city: str) -> str:
    """Says the weather."""
    return "sunny"


@dynamic_prompt
def prompt(request: ModelRequest) -> str:
    return writer.invoke("Write a system prompt for: " + str(request.messages[0].content)).content


agent = create_agent("openai:gpt-4o-mini", tools=[weather], middleware=[prompt])
agent.invoke({"messages": [("user", "Paris?")]}, {"recursion_limit": 7})
