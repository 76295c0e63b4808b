"""What Python computes has no type before it runs: a default may be of another kind than what is there."""

from pathlib import Path
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

HERE = Path(__file__).resolve().parent
NOTES = HERE / "notes"


class Ticket(TypedDict, total=False):
    question: str
    meta: dict
    history: list
    answer: str


llm = ChatOpenAI(model="gpt-4.1-mini")


def read(state: Ticket) -> dict:
    meta = state.get("meta", {})
    first = state.get("history", [{}])[0].get("text")
    error = meta.get("error", {})
    reason = error.get("code") if error else None
    return {"meta": {"started": meta.get("started"), "reason": reason, "first": first, "file": str(NOTES / "a.txt")}}


def write(state: Ticket) -> dict:
    meta = state["meta"]
    waited = 10 - (meta.get("started") or 0)
    said = llm.invoke(f"Answer: {state['question']} (after {waited} s, {meta['reason']})")
    return {"answer": said.content}


builder = StateGraph(Ticket)
builder.add_node("read", read)
builder.add_node("write", write)
builder.add_edge(START, "read")
builder.add_edge("read", "write")
builder.add_edge("write", END)
graph = builder.compile()
