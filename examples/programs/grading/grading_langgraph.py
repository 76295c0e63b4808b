"""Grading as a graph: three judges for a criterion at the same time, and a cycle over the criteria."""

import operator
from statistics import median
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field

RUBRIC = [
    {"name": "thesis", "asks": "Is there one claim, and is it clear?", "most": 10},
    {"name": "evidence", "asks": "Is each claim supported by the sources?", "most": 20},
]
LOOKS_AT = ["language", "arguments", "sources"]
model = ChatOpenAI(model="gpt-5-mini")


class Points(BaseModel):
    points: float = Field(ge=0)
    reason: str


class State(TypedDict, total=False):
    essay: str
    number: int
    again: bool
    points: Annotated[list[tuple[int, bool, Points]], operator.add]
    rows: Annotated[list[dict], operator.add]
    reasons: Annotated[list[str], operator.add]
    grade: dict


class Job(TypedDict):
    essay: str
    number: int
    again: bool
    looks_at: str
    others: str


def current(state: State) -> list[Points]:
    return [p for n, again, p in state["points"] if n == state["number"] and again == state["again"]]


def split(state: State) -> list[Send]:
    number, again = state["number"], state["again"]
    earlier = [p.reason for n, _, p in state.get("points", []) if n == number]
    job = {"essay": state["essay"], "number": number, "again": again}
    others = " / ".join(earlier) if again else "nothing yet"
    return [Send("judge", {**job, "looks_at": what, "others": others}) for what in LOOKS_AT]


def judge(job: Job) -> State:
    criterion = RUBRIC[job["number"]]
    task = f"{criterion['asks']} Points from 0 to {criterion['most']}."
    grader = model.with_structured_output(Points).with_retry(stop_after_attempt=2)
    reply = grader.invoke([
        ("system", f"You grade essays. You look at {job['looks_at']}."),
        ("user", f"{task} The others say: {job['others']}\n\n{job['essay']}"),
    ])
    points = Points(points=min(reply.points, criterion["most"]), reason=reply.reason)
    return {"points": [(job["number"], job["again"], points)]}


def collect(state: State) -> State:
    criterion, points = RUBRIC[state["number"]], current(state)
    given = [p.points for p in points]
    far = max(given) - min(given) > criterion["most"] / 2
    if far and not state["again"]:
        return {"again": True}
    row = {
        "criterion": criterion["name"],
        "points": median(given),
        "of": criterion["most"],
        "far_apart": state["again"],
    }
    update = {"number": state["number"] + 1, "again": False}
    return {**update, "rows": [row], "reasons": [p.reason for p in points]}


def route(state: State) -> list[Send] | str:
    return split(state) if state["number"] < len(RUBRIC) else "comment"


def comment(state: State) -> State:
    rows = state["rows"]
    percent = round(100 * sum(r["points"] for r in rows) / sum(r["of"] for r in rows))
    reply = model.invoke([
        ("system", "You write to students: short, kind, concrete."),
        ("user", f"Comment: {'; '.join(state['reasons'])}\n\n{state['essay']}"),
    ])
    return {"grade": {"percent": percent, "rows": rows, "comment": reply.content}}


graph = StateGraph(State)
for node in (judge, collect, comment):
    graph.add_node(node.__name__, node)
graph.add_conditional_edges(START, split, ["judge"])
graph.add_edge("judge", "collect")
graph.add_conditional_edges("collect", route, ["judge", "comment"])
graph.add_edge("comment", END)
app = graph.compile()


def main(essay: str) -> dict:
    return app.invoke({"essay": essay, "number": 0, "again": False})["grade"]
