"""Parallel tool calls of a prebuilt agent."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def weather(city: str) -> str:
    """Says what the weather is like."""
    return f"It rains in {city}."


@tool
def distance(city: str) -> int:
    """Says how far it is."""
    return 30


agent = create_react_agent(ChatOpenAI(model="m"), [weather, distance], prompt="Look it up.")

if __name__ == "__main__":
    asked = {"messages": [("user", "Bonn or Trier?")]}
    result = agent.invoke(asked, {"recursion_limit": 6})
    print(result["messages"][-1].content)
