"""A cycle that writes and judges, with a counter."""
import json
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

llm = ChatOpenAI(model="m")


class Verdict(BaseModel):
    good: bool = Field(description="whether it may be printed")
    remark: str


class State(TypedDict):
    topic: str
    draft: str
    remark: str
    good: bool
    rounds: int


def write(state: State):
    if state.get("remark"):
        reply = llm.invoke(f"Write about {state['topic']}, and mind this: {state['remark']}")
    else:
        reply = llm.invoke(f"Write about {state['topic']}")
    return {"draft": reply.content, "rounds": state["rounds"] + 1}


def judge(state: State):
    verdict = llm.with_structured_output(Verdict).invoke(f"Judge this: {state['draft']}")
    return {"good": verdict.good, "remark": verdict.remark}


def route(state: State):
    if state["good"] or state["rounds"] >= 3:
        return "done"
    return "again"


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("judge", judge)
builder.add_edge(START, "write")
builder.add_edge("write", "judge")
builder.add_conditional_edges("judge", route, {"done": END, "again": "write"})
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"topic": "bees", "rounds": 0})))
