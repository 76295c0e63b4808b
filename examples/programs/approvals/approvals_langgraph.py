"""Approvals as a graph that waits for a person."""

import re
import uuid
from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field
from world import approved, call

FORBIDDEN = ["gifts"]
SYSTEM = ("system", "You read requests for expenses.")
model = ChatOpenAI(model="gpt-5-mini")


class Request(BaseModel):
    kind: Literal["travel", "books", "hardware", "gifts"]
    amount: float = Field(gt=0)
    reason: str


class Doubt(BaseModel):
    question: str | None


class State(TypedDict, total=False):
    team: str
    text: str
    known: dict
    request: Request
    outcome: dict


def look_up(state: State) -> State:
    known = next((t for t in call("teams") if t["name"] == state["team"]), None)
    if known is None:
        raise ValueError(f"there is no team {state['team']}")
    return {"known": known}


def read(state: State) -> State:
    reader = model.with_structured_output(Request).with_retry(stop_after_attempt=2)
    request = reader.invoke([SYSTEM, ("user", f"What is to be paid, and why?\n\n{state['text']}")])
    return {"request": request}


def check(state: State) -> State:
    request, team = state["request"], state["known"]
    if request.kind in FORBIDDEN:
        return {"outcome": {"Declined": {"why": f"{request.kind} are not paid"}}}
    if request.amount > team["left"]:
        return {"outcome": {"Declined": {"why": f"{team['name']} has {team['left']:.2f} left"}}}
    task = f"If a reviewer must ask something about this {request.kind} expense, what? Otherwise null."
    doubt = model.with_structured_output(Doubt).invoke([SYSTEM, ("user", f"{task}\n\n{state['text']}")])
    return {"outcome": {"Returned": {"question": doubt.question}}} if doubt.question else {}


def route(state: State) -> str:
    return END if state.get("outcome") else "pay"


def pay(state: State) -> State:
    request = state["request"]
    arguments = {"account": state["known"]["account"], "amount": request.amount, "note": request.reason}
    if request.amount > 2000:
        return {"outcome": {"Declined": {"why": "no expense is above 2000"}}}
    if re.search(r"https?://|www\.", request.reason):
        return {"outcome": {"Declined": {"why": "the note has a link"}}}
    if request.amount > 100 and not interrupt({"pay": arguments}):
        return {"outcome": {"Declined": {"why": "not approved"}}}
    try:
        call("pay", **arguments)
    except Exception as why:
        return {"outcome": {"Declined": {"why": str(why)}}}
    return {"outcome": {"Paid": {"amount": request.amount}}}


graph = StateGraph(State)
for node in (look_up, read, check, pay):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "look_up")
graph.add_edge("look_up", "read")
graph.add_edge("read", "check")
graph.add_conditional_edges("check", route, ["pay", END])
graph.add_edge("pay", END)
app = graph.compile(checkpointer=InMemorySaver())


def main(team: str, text: str) -> dict:
    thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
    state = app.invoke({"team": team, "text": text}, thread)
    while waiting := state.get("__interrupt__"):
        state = app.invoke(Command(resume=approved("pay", waiting[0].value["pay"])), thread)
    return state["outcome"]
