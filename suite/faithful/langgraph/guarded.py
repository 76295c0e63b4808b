"""A node that raises where something is missing, and catches what a model may raise."""
import json
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    text: str
    short: str
    title: str


def shorten(state: State):
    text = state.get("text", "")
    if not text.strip():
        raise ValueError("there is no text")
    try:
        reply = llm.invoke(f"Shorten: {text}")
        return {"short": reply.content}
    except Exception as error:
        return {"short": f"failed: {error}"}


def name(state: State):
    short = state["short"]
    if not short:
        return {"title": "untitled"}
    if len(short) > 1000:
        raise ValueError("still too long")
    reply = llm.invoke(f"Name this: {short}")
    return {"title": reply.content.strip().capitalize()}


builder = StateGraph(State)
builder.add_node("shorten", shorten)
builder.add_node("name", name)
builder.add_edge(START, "shorten")
builder.add_edge("shorten", "name")
builder.add_edge("name", END)
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"text": "A long story of a dog."})))
