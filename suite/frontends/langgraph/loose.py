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


class Note(TypedDict):
    text: str


def shout(state: Note) -> dict:
    return {"text": [state["text"].upper(), llm.invoke(state["text"]).content]}


def join(state: Note) -> dict:
    return {"text": "; ".join(state["text"])}


from langgraph.prebuilt import ToolNode  # noqa: E402


def search(query: str) -> str:
    """Searches."""
    return ""


# What runs may come first: then its own name counts.
notes = StateGraph(Note)
notes.add_node(shout)
notes.add_node(ToolNode([search], name="look"), "look")
notes.add_node(join)
notes.add_edge(START, "shout")
notes.add_edge("shout", "look")
notes.add_edge("look", "join")
notes.add_edge("join", END)
shouted = notes.compile()


class Draft(TypedDict, total=False):
    parts: list
    prompt: dict


def tidy(state: Draft) -> dict:
    kept = [p.strip() for p in state["parts"] if p.strip()]
    missing = {"title", "end"} - {p for p in kept if p}
    said = llm.invoke([("system", state.get("prompt", {}).get("text")), ("user", "; ".join(kept))])
    return {"parts": kept + [said.content, kept[-1]], "prompt": {"missing": len(missing)}}


tidied = StateGraph(Draft).add_node("tidy", tidy).add_edge(START, "tidy").add_edge("tidy", END).compile()
