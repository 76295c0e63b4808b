"""A LangGraph that writes a draft and reviews it; somebody forgot the edge to END."""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

model = ChatOpenAI(model="gpt-4.1-mini")


class State(TypedDict):
    draft: str


def write(state: State) -> dict:
    return {"draft": model.invoke("Improve this draft: " + state["draft"]).content}


def review(state: State) -> dict:
    return {"draft": model.invoke("Criticize this draft: " + state["draft"]).content}


graph = StateGraph(State)
graph.add_node("write", write)
graph.add_node("review", review)
graph.add_edge(START, "write")
graph.add_edge("write", "review")
graph.add_edge("review", "write")
app = graph.compile()
app.invoke({"draft": "Bees."}, {"recursion_limit": 20})
