"""LangChain's agent with two tools."""
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def find(name: str) -> str:
    """Finds a number."""
    return "4711"


@tool("dial_number")
def dial(number: str) -> str:
    """Dials."""
    return f"calling {number}"


agent = create_agent(model=ChatOpenAI(model="m"), tools=[find, dial], system_prompt="Connect people.")

if __name__ == "__main__":
    result = agent.invoke({"messages": [{"role": "user", "content": "Call Ann"}]})
    print(result["messages"][-1].content)
