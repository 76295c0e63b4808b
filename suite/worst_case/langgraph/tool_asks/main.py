"""A tool that asks a model itself."""
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4o-mini")


@tool
def summarize(url: str) -> str:
    """Summarizes a page."""
    return llm.invoke(f"Summarize {url}").content


agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), [summarize], system_prompt="Summarize pages.")

if __name__ == "__main__":
    agent.invoke({"messages": [{"role": "user", "content": "example.org"}]}, {"recursion_limit": 8})
