"""Data cleaning as a graph: a branch for each spelling that no rule knows."""

import operator
from decimal import Decimal
from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

SPELLINGS = {"germany": "DE", "deutschland": "DE", "france": "FR", "uk": "GB", "usa": "US"}
model = ChatOpenAI(model="gpt-5-mini")


class Named(BaseModel):
    country: Literal["DE", "FR", "GB", "US", "unknown"]


class State(TypedDict, total=False):
    rows: list[dict]
    named: Annotated[list[tuple[str, str]], operator.add]
    report: dict


class Job(TypedDict):
    text: str


def tidy(text: str) -> str:
    return " ".join(text.split())


def amount(text: str) -> float:
    plain = text.replace("€", "").strip()
    if "," in plain:
        plain = plain.replace(".", "").replace(",", ".")
    return float(round(Decimal(plain or "0"), 2))


def split(state: State) -> list[Send] | str:
    good = [row for row in state["rows"] if "@" in row["mail"]]
    strange = {tidy(row["country"]).lower(): None for row in good}
    return [Send("name_country", {"text": text}) for text in strange if text not in SPELLINGS] or "merge"


def name_country(job: Job) -> State:
    clerk = model.with_structured_output(Named).with_retry(stop_after_attempt=2)
    try:
        reply = clerk.invoke([
            ("system", "You know how people misspell countries."),
            ("user", f'Which country is meant by "{job["text"]}"?'),
        ])
        return {"named": [(job["text"], reply.country)]}
    except Exception:
        return {"named": [(job["text"], "unknown")]}


def merge(state: State) -> State:
    rows = state["rows"]
    good = [row for row in rows if "@" in row["mail"]]
    known = {**SPELLINGS, **dict(state.get("named", []))}
    merged: dict[str, dict] = {}
    for row in good:
        mail = tidy(row["mail"]).lower()
        country = known.get(tidy(row["country"]).lower(), "unknown")
        contact = {"name": tidy(row["name"]).title(), "mail": mail, "country": country}
        first = merged.setdefault(mail, {**contact, "spent": 0})
        first["spent"] = max(first["spent"], amount(row["spent"]))
    report = {
        "contacts": sorted(merged.values(), key=lambda contact: contact["name"]),
        "rejected": [row["name"] for row in rows if "@" not in row["mail"]],
        "merged": len(good) - len(merged),
    }
    return {"report": report}


graph = StateGraph(State)
graph.add_node("name_country", name_country)
graph.add_node("merge", merge)
graph.add_conditional_edges(START, split, ["name_country", "merge"])
graph.add_edge("name_country", "merge")
graph.add_edge("merge", END)
app = graph.compile()


def main(rows: list[dict]) -> dict:
    return app.invoke({"rows": rows}, {"max_concurrency": 4})["report"]
