"""Code review as a graph: each file and aspect is a branch."""

import operator
from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

ASPECTS = ["security", "correctness"]
model = ChatOpenAI(model="gpt-5-mini")


class Finding(BaseModel):
    line: int
    severity: Literal["low", "high"]
    problem: str


class Findings(BaseModel):
    findings: list[Finding]


class Opinion(BaseModel):
    right: bool


class State(TypedDict, total=False):
    files: list[dict]
    found: Annotated[list[tuple[dict, Finding]], operator.add]
    kept: Annotated[list[tuple[str, Finding]], operator.add]
    verdict: dict | str


class Job(TypedDict):
    file: dict
    aspect: str


class Doubt(TypedDict):
    file: dict
    finding: Finding


def split(state: State) -> list[Send]:
    return [Send("review", {"file": f, "aspect": a}) for f in state["files"] for a in ASPECTS]


def review(job: Job) -> State:
    reader = model.with_structured_output(Findings).with_retry(stop_after_attempt=2)
    question = f"Review this change for {job['aspect']}. `line` is the line in the file.\n\n{job['file']['diff']}"
    reply = reader.invoke([
        ("system", "You review changes of a payment service. Name only what you can point to."),
        ("user", question),
    ])
    return {"found": [(job["file"], finding) for finding in reply.findings]}


def collect(state: State) -> State:
    return {}


def doubts(state: State) -> list[Send] | str:
    unique = {(file["name"], finding.model_dump_json()): (file, finding) for file, finding in state["found"]}
    sends = [Send("confirm", {"file": file, "finding": finding}) for file, finding in unique.values()]
    return sends or "decide"


def confirm(doubt: Doubt) -> State:
    file, finding = doubt["file"], doubt["finding"]
    if finding.severity == "high":
        skeptic = model.with_structured_output(Opinion)
        opinion = skeptic.invoke([
            ("system", "You doubt findings of code reviews. Confirm only what is certain."),
            ("user", f"Is this finding right? Finding: {finding.problem}\n\n{file['diff']}"),
        ])
        if not opinion.right:
            return {}
    return {"kept": [(file["name"], finding)]}


def decide(state: State) -> State:
    found = state.get("kept", [])
    high = [(name, finding) for name, finding in found if finding.severity == "high"]
    lines = [f"{name}:{finding.line} {finding.problem}" for name, finding in high or found]
    if high:
        return {"verdict": {"Block": {"lines": lines}}}
    return {"verdict": {"Comment": {"lines": lines}} if found else "Approve"}


graph = StateGraph(State)
graph.add_node("review", review)
graph.add_node("collect", collect)
graph.add_node("confirm", confirm)
graph.add_node("decide", decide)
graph.add_conditional_edges(START, split, ["review"])
graph.add_edge("review", "collect")
graph.add_conditional_edges("collect", doubts, ["confirm", "decide"])
graph.add_edge("confirm", "decide")
graph.add_edge("decide", END)
app = graph.compile()


def main(files: list[dict]) -> dict | str:
    return app.invoke({"files": files}, {"max_concurrency": 8})["verdict"]
