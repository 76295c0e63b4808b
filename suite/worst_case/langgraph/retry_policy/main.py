"""A node that is retried when it fails."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    topic: str
    number: int


def estimate(state: State):
    reply = llm.invoke(f"How many {state['topic']} are there? Only a number.")
    return {"number": int(reply.content)}


def always(error: Exception) -> bool:
    return True


builder = StateGraph(State)
builder.add_node("estimate", estimate, retry_policy=RetryPolicy(max_attempts=4, initial_interval=0.01, retry_on=always))
builder.add_edge(START, "estimate")
builder.add_edge("estimate", END)
graph = builder.compile()
print(graph.invoke({"topic": "stars"}))
