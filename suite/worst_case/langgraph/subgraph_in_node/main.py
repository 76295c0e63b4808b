"""A node that calls another graph for each item of its input."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class Item(TypedDict):
    text: str
    out: str


class All(TypedDict):
    items: list[str]
    outs: list[str]


def translate(state: Item):
    return {"out": llm.invoke("Translate " + state["text"]).content}


def check(state: Item):
    return {"out": llm.invoke("Check " + state["out"]).content}


inner = StateGraph(Item).add_node(translate).add_node(check)
inner.add_edge(START, "translate")
inner.add_edge("translate", "check")
inner.add_edge("check", END)
sub = inner.compile()


def each(state: All):
    return {"outs": [sub.invoke({"text": item})["out"] for item in state["items"]]}


outer = StateGraph(All)
outer.add_node("each", each)
outer.add_edge(START, "each")
outer.add_edge("each", END)
print(outer.compile().invoke({"items": ["one", "two", "three"]}))
