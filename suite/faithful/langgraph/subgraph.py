"""A subgraph with shared keys."""
import json
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="m")


class Inner(TypedDict):
    text: str
    notes: str


class Outer(TypedDict):
    text: str
    title: str


def note(state: Inner):
    return {"notes": llm.invoke("Take notes of: " + state["text"]).content}


def shorten(state: Inner):
    return {"text": llm.invoke(f"Shorten by these notes: {state['notes']}").content}


inner = StateGraph(Inner).add_sequence([note, shorten])
inner.add_edge(START, "note")


def name(state: Outer):
    return {"title": llm.invoke(f"A title for: {state['text']}").content.upper()}


outer = StateGraph(Outer)
outer.add_node("edit", inner.compile())
outer.add_node("name", name)
outer.add_edge(START, "edit")
outer.add_edge("edit", "name")
outer.add_edge("name", END)
graph = outer.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"text": "A long story."})))
