"""Prompts of lists that grow under tests, of numbered lines, and of records that are spread."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")
WORDS = ["bee", "ant"]


class State(TypedDict, total=False):
    topic: str
    names: list
    marks: list
    about: dict
    text: str


def collect(state: State):
    names = [part for part in state["topic"].split(",")]
    return {"names": names, "marks": [len(n) for n in names], "about": {"by": "me", **state.get("about", {}), "n": len(names)}}


def write(state: State):
    lines = ["Write about:"]
    if any(word in state["topic"] for word in WORDS):
        lines.append("Insects.")
    if len(state["names"]) > 2:
        lines.append("Be brief.")
    else:
        lines.append("Be long.")
        if all(mark > 1 for mark in state["marks"]):
            lines.append("All of them.")
    for i, name in enumerate(state["names"], 1):
        lines.append(f"{i}. {name}")
    lines.append("Marks: " + ", ".join(f"{n}={m}" for n, m in zip(state["names"], state["marks"])))
    return {"text": llm.invoke("\n".join(lines)).content}


def judge(state: State):
    about = {**state["about"]}
    about["seen"] = isinstance(state["text"], (str, list))
    return {"about": about}


graph = StateGraph(State)
graph.add_node("collect", collect)
graph.add_node("write", write)
graph.add_node("judge", judge)
graph.add_edge(START, "collect")
graph.add_edge("collect", "write")
graph.add_edge("write", "judge")
graph.add_edge("judge", END)
app = graph.compile()

if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(app.invoke({"topic": "bees,ants"})))
