"""A support desk as a graph."""

from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from world import approved, call

LIMIT = 200
model = ChatOpenAI(model="gpt-5-mini")


class Reading(BaseModel):
    topic: Literal["refund", "delivery", "other"]
    angry: bool
    share: float = Field(ge=0, le=1, description="the part of the order to pay back, from 0 to 1")


class State(TypedDict, total=False):
    id: str
    message: str
    order: dict | None
    reading: Reading
    outcome: dict


def look_up(state: State) -> State:
    own: list[dict] = call("orders")
    return {"order": next((o for o in own if o["id"] == state["id"]), None)}


def read(state: State) -> State:
    reader = model.with_structured_output(Reading).with_retry(stop_after_attempt=2)
    reading = reader.invoke([
        ("system", "You read messages of customers of a tea shop."),
        ("user", f"What does the customer want?\n\n{state['message']}"),
    ])
    return {"reading": reading}


def route(state: State) -> str:
    reading, order = state["reading"], state["order"]
    if reading.topic == "other" and reading.angry:
        return "escalate"
    if reading.topic == "refund" and order is None:
        return "escalate"
    if reading.topic == "refund" and reading.share > 0:
        return "refund"
    return "answer"


def escalate(state: State) -> State:
    return {"outcome": {"Escalated": {"why": "no such order" if state["order"] is None else "angry"}}}


def refund(state: State) -> State:
    amount = round(state["order"]["total"] * state["reading"].share, 2)
    arguments = {"id": state["id"], "amount": amount}
    try:
        if amount > LIMIT:
            raise PermissionError("more than the desk may pay")
        if amount > 50 and not approved("refund", arguments):
            raise PermissionError("not approved")
        call("refund", **arguments)
    except Exception as why:
        return {"outcome": {"Escalated": {"why": str(why)}}}
    return {"outcome": {"Refunded": {"amount": amount}}}


def facts(order: dict | None) -> str:
    if order is None:
        return "There is no such order."
    if order["days"] > 14 and not order["delivered"]:
        return "It is late; we send it again."
    return "It was delivered." if order["delivered"] else f"It was sent {order['days']} days ago."


def answer(state: State) -> State:
    reply = model.with_retry(stop_after_attempt=2).invoke([
        ("system", "You answer customers in two friendly sentences."),
        ("user", f"Answer this message. What we know: {facts(state['order'])}\n\n{state['message']}"),
    ])
    return {"outcome": {"Answered": {"text": reply.content}}}


graph = StateGraph(State)
for node in (look_up, read, escalate, refund, answer):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "look_up")
graph.add_edge("look_up", "read")
graph.add_conditional_edges("read", route, ["escalate", "refund", "answer"])
for last in ("escalate", "refund", "answer"):
    graph.add_edge(last, END)
app = graph.compile()


def main(id: str, message: str) -> dict:
    return app.invoke({"id": id, "message": message})["outcome"]
