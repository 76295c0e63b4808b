"""Release notes as a graph: a branch for each commit, then a cycle of writing and reviewing."""

import operator
from itertools import groupby
from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field

TITLES = {"breaking": "Breaking changes", "feature": "New", "fix": "Fixed", "internal": "Internal"}
WRITER = ("system", "You write release notes for users, not for developers.")
EDITOR = ("system", "You edit release notes. You approve what is short and clear.")
model = ChatOpenAI(model="gpt-5-mini")


class Change(BaseModel):
    kind: Literal["breaking", "feature", "fix", "internal"]
    line: str = Field(max_length=200)


class Notes(BaseModel):
    text: str


class Review(BaseModel):
    approved: bool
    feedback: str


class State(TypedDict, total=False):
    version: str
    commits: list[str]
    changes: Annotated[list[tuple[int, Change]], operator.add]
    text: str
    rounds: int
    review: Review


class Job(TypedDict):
    number: int
    commit: str


def split(state: State) -> list[Send] | str:
    jobs = enumerate(state["commits"])
    return [Send("sort", {"number": n, "commit": commit}) for n, commit in jobs] or "write"


def sort(job: Job) -> State:
    reader = model.with_structured_output(Change).with_retry(stop_after_attempt=2)
    change = reader.invoke([
        ("system", "You read commits of a library."),
        ("user", f"What does this commit change for users?\n\n{job['commit']}"),
    ])
    return {"changes": [(job["number"], change)]}


def next_version(version: str, changes: list[Change]) -> str:
    major, minor, patch = (int(part) for part in version.split("."))
    kinds = {change.kind for change in changes}
    if "breaking" in kinds:
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if "feature" in kinds else f"{major}.{minor}.{patch + 1}"


def listed(state: State) -> str:
    changes = [c for _, c in sorted(state.get("changes", []), key=lambda pair: pair[0])]
    shown = [change for change in changes if change.kind != "internal"]
    shown.sort(key=lambda change: TITLES[change.kind])
    groups = groupby(shown, key=lambda change: TITLES[change.kind])
    return "\n\n".join(f"{title}:\n" + "\n".join(f"- {c.line}" for c in group) for title, group in groups)


def write(state: State) -> State:
    version = next_version(state["version"], [c for _, c in state.get("changes", [])])
    writer = model.with_structured_output(Notes).with_retry(stop_after_attempt=2)
    notes = writer.invoke([WRITER, ("user", f"Notes of {version}:\n\n{listed(state)}")])
    return {"version": version, "text": notes.text, "rounds": 0}


def check(state: State) -> State:
    editor = model.with_structured_output(Review)
    review = editor.invoke([EDITOR, ("user", f"Review these notes:\n\n{state['text']}")])
    return {"review": review, "rounds": state["rounds"] + 1}


def revise(state: State) -> State:
    task = f"Revise the notes of {state['version']}. {state['review'].feedback}"
    writer = model.with_structured_output(Notes)
    notes = writer.invoke([WRITER, ("user", f"{task}\n\n{state['text']}\n\n{listed(state)}")])
    return {"text": notes.text}


graph = StateGraph(State)
for node in (sort, write, check, revise):
    graph.add_node(node.__name__, node)
graph.add_conditional_edges(START, split, ["sort", "write"])
graph.add_edge("sort", "write")
graph.add_edge("write", "check")
graph.add_conditional_edges("check", lambda s: END if s["review"].approved else "revise", ["revise", END])
graph.add_conditional_edges("revise", lambda s: "check" if s["rounds"] < 2 else END, ["check", END])
app = graph.compile()


def main(version: str, commits: list[str]) -> dict:
    state = app.invoke({"version": version, "commits": commits}, {"max_concurrency": 8})
    return {"version": state["version"], "notes": state["text"]}
