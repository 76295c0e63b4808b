"""Simulation as a graph: buyer and seller in a cycle."""

import operator
from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

model = ChatOpenAI(model="gpt-5-mini")


class Move(BaseModel):
    kind: Literal["offer", "accept", "leave"]
    price: float | None = Field(default=None, gt=0)
    words: str = ""


class State(TypedDict, total=False):
    list_price: float
    buyer_limit: float
    seller_limit: float
    history: Annotated[list[dict], operator.add]
    price: float
    rounds: int
    deal: dict


def told(history: list[dict]) -> str:
    return "\n".join(f"{r['by']}: {r['says']} ({r['price']})" for r in history)


def round_of(move: Move, by: str, last: float, low: float, high: float) -> dict | None:
    if move.kind == "offer":
        return {"by": by, "says": move.words, "price": max(low, min(high, move.price or last))}
    return {"by": by, "says": "Agreed.", "price": last} if move.kind == "accept" else None


def ask(system: str, question: str, history: list[dict]) -> Move:
    player = model.with_structured_output(Move).with_retry(stop_after_attempt=2)
    task = f"{question} Offer, accept the last price, or leave."
    return player.invoke([("system", system), ("user", f"{task}\n\n{told(history)}")])


def buyer(state: State) -> State:
    limit, price, rounds = state["buyer_limit"], state["price"], state["rounds"] + 1
    system = "You buy a used bicycle. Pay as little as you can."
    move = ask(system, f"You can pay {limit} at most.", state["history"])
    if move.kind == "accept" and price <= limit:
        return {"rounds": rounds, "deal": {"Agreed": {"price": price, "rounds": rounds}}}
    said = round_of(move, "buyer", min(price, limit), 0, limit)
    if said is None:
        return {"rounds": rounds, "deal": {"Failed": {"why": "the buyer left", "rounds": rounds}}}
    return {"rounds": rounds, "history": [said], "price": said["price"]}


def seller(state: State) -> State:
    limit, price, rounds = state["seller_limit"], state["price"], state["rounds"]
    system = "You sell a used bicycle. Get as much as you can."
    move = ask(system, f"You need {limit} at least.", state["history"])
    if move.kind == "accept" and price >= limit:
        return {"deal": {"Agreed": {"price": price, "rounds": rounds}}}
    said = round_of(move, "seller", max(price, limit), limit, state["list_price"])
    if said is None:
        return {"deal": {"Failed": {"why": "the seller left", "rounds": rounds}}}
    if rounds == 8:
        return {"deal": {"Failed": {"why": "no time left", "rounds": rounds}}}
    return {"history": [said], "price": said["price"]}


graph = StateGraph(State)
graph.add_node("buyer", buyer)
graph.add_node("seller", seller)
graph.add_edge(START, "buyer")
graph.add_conditional_edges("buyer", lambda state: END if "deal" in state else "seller", ["seller", END])
graph.add_conditional_edges("seller", lambda state: END if "deal" in state else "buyer", ["buyer", END])
app = graph.compile()


def main(list_price: float, buyer_limit: float, seller_limit: float) -> dict:
    start = {"by": "seller", "says": "For sale.", "price": list_price}
    state = {"list_price": list_price, "buyer_limit": buyer_limit, "seller_limit": seller_limit}
    return app.invoke({**state, "history": [start], "price": list_price, "rounds": 0})["deal"]
