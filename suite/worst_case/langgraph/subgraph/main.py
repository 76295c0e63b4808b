"""A graph within a graph, which loops."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class Inner(TypedDict):
    text: str


class Outer(TypedDict):
    text: str


def improve(state: Inner):
    return {"text": llm.invoke("Improve " + state["text"]).content}


def again(state: Inner):
    return END if "DONE" in state["text"] else "improve"


inner = StateGraph(Inner)
inner.add_node("improve", improve)
inner.add_edge(START, "improve")
inner.add_conditional_edges("improve", again)
loop = inner.compile().with_config(recursion_limit=4)


def first(state: Outer):
    return {"text": llm.invoke("Begin " + state["text"]).content}


outer = StateGraph(Outer)
outer.add_node("first", first)
outer.add_node("loop", loop)
outer.add_edge(START, "first")
outer.add_edge("first", "loop")
outer.add_edge("loop", END)
print(outer.compile().invoke({"text": "a story"}, {"recursion_limit": 20}))
