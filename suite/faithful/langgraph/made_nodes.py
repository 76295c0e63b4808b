"""Nodes that functions make: closures, `partial`, and a loop over names."""
import json
from functools import partial
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="m", temperature=0)


class State(TypedDict):
    text: str
    title: str
    tags: str


def editor(rule: str):
    def node(state: State) -> dict:
        return {"text": llm.invoke(f"{rule}\n\n{state['text']}").content}

    return node


def name(state: State, *, style: str) -> dict:
    return {"title": llm.invoke(f"A {style} title for: {state['text']}").content.strip()}


RULES = {"shorten": "Shorten it.", "polish": "Polish it."}

builder = StateGraph(State)
for node, rule in RULES.items():
    builder.add_node(node, editor(rule))
builder.add_node("name", partial(name, style="short"))
builder.add_node("tag", lambda state: {"tags": llm.invoke("Tags for " + state["title"]).content.lower()})
builder.add_edge(START, "shorten")
builder.add_edge("shorten", "polish")
builder.add_edge("polish", "name")
builder.add_edge("name", "tag")
builder.add_edge("tag", END)
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"text": "A long text."})))
