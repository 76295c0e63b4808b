"""A prebuilt agent that reaches its step limit."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def poke(n: int) -> str:
    """Pokes."""
    return "nothing happens"


agent = create_react_agent(ChatOpenAI(model="m"), tools=[poke])

if __name__ == "__main__":
    result = agent.invoke({"messages": [{"role": "user", "content": "Go on"}]}, config={"recursion_limit": 4})
    print(result["messages"][-1].content)
