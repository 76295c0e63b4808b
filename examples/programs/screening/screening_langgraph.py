"""Screening of applications as a graph: a branch for each letter."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field

WEIGHTS = {"experience": 0.5, "tools": 0.3, "writing": 0.2}
NEEDED = ["sql", "python"]
model = ChatOpenAI(model="gpt-5-mini")


class Facts(BaseModel):
    name: str
    years: float = Field(ge=0, le=60)
    tools: list[str]
    gaps: bool


class Points(BaseModel):
    points: float = Field(ge=0, le=10)
    why: str


reader = model.with_structured_output(Facts).with_retry(stop_after_attempt=2)
judge = model.with_structured_output(Points).with_retry(stop_after_attempt=2)


class State(TypedDict, total=False):
    letters: list[str]
    scored: Annotated[list[tuple[int, dict]], operator.add]
    ranking: dict


class Job(TypedDict):
    number: int
    letter: str


def split(state: State) -> list[Send] | str:
    jobs = enumerate(state["letters"])
    return [Send("score", {"number": n, "letter": letter}) for n, letter in jobs] or "rank"


def without_name(letter: str, name: str) -> str:
    for part in name.split():
        letter = letter.replace(part, "N.")
    return letter


def doubts(facts: Facts, points: list[float]) -> list[str]:
    tools = [tool.lower() for tool in facts.tools]
    found = [f"no {tool}" for tool in NEEDED if tool not in tools]
    if facts.gaps:
        found.append("gaps")
    spread = max(points) - min(points)
    return found + ([f"points differ by {spread:g}"] if spread > 6 else [])


def score(job: Job) -> State:
    facts = reader.invoke([
        ("system", "You copy facts from applications. You judge nothing."),
        ("user", f"Facts of this application:\n\n{job['letter']}"),
    ])
    blind = without_name(job["letter"], facts.name)
    points = []
    for criterion in WEIGHTS:
        reply = judge.invoke([
            ("system", "You give points from 0 to 10. You don't know who applies."),
            ("user", f"Points for {criterion}:\n\n{blind}"),
        ])
        points.append(reply.points)
    total = round(sum(w * p for w, p in zip(WEIGHTS.values(), points)), 2)
    scored = {"name": facts.name, "total": total, "doubts": doubts(facts, points)}
    return {"scored": [(job["number"], scored)]}


def rank(state: State) -> State:
    scored = [s for _, s in sorted(state.get("scored", []), key=lambda pair: pair[0])]
    ranked = sorted(scored, key=lambda s: -s["total"])
    ranking = {
        "invited": [s["name"] for s in ranked if not s["doubts"] and s["total"] >= 7],
        "read_by_person": [s for s in ranked if s["doubts"] and s["total"] >= 4],
        "rejected": sum(s["total"] < 4 for s in ranked),
    }
    return {"ranking": ranking}


graph = StateGraph(State)
graph.add_node("score", score)
graph.add_node("rank", rank)
graph.add_conditional_edges(START, split, ["score", "rank"])
graph.add_edge("score", "rank")
graph.add_edge("rank", END)
app = graph.compile()


def main(letters: list[str]) -> dict:
    return app.invoke({"letters": letters}, {"max_concurrency": 4})["ranking"]
