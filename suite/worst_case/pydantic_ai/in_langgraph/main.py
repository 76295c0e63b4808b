"""A node of a graph that runs an agent of another framework."""
from typing import TypedDict

from pydantic_ai import Agent

agent = Agent("openai-chat:gpt-4o-mini", output_type=int)


class State(TypedDict):
    n: int


def count(state: State) -> State:
    for _ in range(2):
        state = {"n": state["n"] + agent.run_sync("A number").output}
    return state


print(count({"n": 0}))
