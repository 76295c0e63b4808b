"""A program that asks its agent again after an error."""
import time

from langchain.agents import create_agent
from langgraph.errors import GraphRecursionError


def search(query: str) -> str:
    """Searches."""
    return "found"


agent = create_agent("openai:gpt-4o-mini", [search])


def answer(question: str, attempts: int = 3) -> str:
    attempt = 0
    while attempt < attempts:
        try:
            result = agent.invoke({"messages": [("user", question)]}, {"recursion_limit": 5})
            return result["messages"][-1].content
        except GraphRecursionError:
            attempt += 1
            time.sleep(0.01)
    return "no answer"


print(answer("Why?"))
