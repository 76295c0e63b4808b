"""An agent whose tool starts the agent again."""
from langchain.agents import create_agent
from langchain_core.tools import tool


@tool
def divide_and_conquer(problem: str, depth: int = 0) -> str:
    """Solves a part of the problem."""
    if depth > 2:
        return "too deep"
    return solve(problem, depth + 1)


def solve(problem: str, depth: int = 0) -> str:
    agent = create_agent("openai:gpt-4o-mini", tools=[divide_and_conquer])
    return agent.invoke({"messages": [("user", problem)]}, {"recursion_limit": 5})["messages"][-1].content


print(solve("Build a house"))
