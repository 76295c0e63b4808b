"""Branches of different length that join; the join may run twice."""
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    said: Annotated[list, operator.add]


def say(word):
    def node(state: State):
        return {"said": [llm.invoke(word).content]}

    return node


g = StateGraph(State)
for name in ("a", "b", "b2", "join"):
    g.add_node(name, say(name))
g.add_edge(START, "a")
g.add_edge("a", "b")
g.add_edge("b", "b2")
g.add_edge("a", "join")
g.add_edge("b2", "join")
g.add_edge("join", END)
print(g.compile().invoke({"said": []}))
