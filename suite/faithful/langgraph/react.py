"""A prebuilt ReAct agent with a tool and instructions."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def weather(city: str) -> str:
    """Says what the weather is like."""
    return f"It rains in {city}."


agent = create_react_agent(ChatOpenAI(model="m"), [weather], prompt="Look it up.")

if __name__ == "__main__":
    result = agent.invoke({"messages": [("user", "Do I need a coat in Bonn?")]})
    print(result["messages"][-1].content)
