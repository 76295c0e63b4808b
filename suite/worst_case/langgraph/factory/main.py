"""Nodes that a function makes."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    text: str


def make_node(role: str, rounds: int):
    llm = ChatOpenAI(model="gpt-4o-mini")

    def node(state: State):
        text = state["text"]
        for _ in range(rounds):
            text = llm.invoke([("system", role), ("user", text)]).content
        return {"text": text}

    return node


builder = StateGraph(State)
roles = {"writer": 1, "critic": 2, "editor": 3}
last = START
for name, rounds in roles.items():
    builder.add_node(name, make_node(f"You are the {name}.", rounds))
    builder.add_edge(last, name)
    last = name
builder.add_edge(last, END)
print(builder.compile().invoke({"text": "hello"}))
