"""Simulation with pydantic-ai."""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent

MODEL = "openai-chat:gpt-5-mini"


class Move(BaseModel):
    kind: Literal["offer", "accept", "leave"]
    price: float | None = Field(default=None, gt=0)
    words: str = ""


buyer = Agent(
    MODEL,
    output_type=Move,
    instructions="You buy a used bicycle. Pay as little as you can.",
    retries=2,
)
seller = Agent(
    MODEL,
    output_type=Move,
    instructions="You sell a used bicycle. Get as much as you can.",
    retries=2,
)


def told(history: list[dict]) -> str:
    return "\n".join(f"{r['by']}: {r['says']} ({r['price']})" for r in history)


def round_of(move: Move, by: str, last: float, low: float, high: float) -> dict | None:
    if move.kind == "offer":
        return {"by": by, "says": move.words, "price": max(low, min(high, move.price or last))}
    return {"by": by, "says": "Agreed.", "price": last} if move.kind == "accept" else None


def ask(player: Agent[None, Move], question: str, history: list[dict]) -> Move:
    task = f"{question} Offer, accept the last price, or leave."
    return player.run_sync(f"{task}\n\n{told(history)}").output


def main(list_price: float, buyer_limit: float, seller_limit: float) -> dict:
    history = [{"by": "seller", "says": "For sale.", "price": list_price}]
    price = list_price
    for rounds in range(1, 9):
        move = ask(buyer, f"You can pay {buyer_limit} at most.", history)
        if move.kind == "accept" and price <= buyer_limit:
            return {"Agreed": {"price": price, "rounds": rounds}}
        said = round_of(move, "buyer", min(price, buyer_limit), 0, buyer_limit)
        if said is None:
            return {"Failed": {"why": "the buyer left", "rounds": rounds}}
        history.append(said)
        price = said["price"]
        move = ask(seller, f"You need {seller_limit} at least.", history)
        if move.kind == "accept" and price >= seller_limit:
            return {"Agreed": {"price": price, "rounds": rounds}}
        said = round_of(move, "seller", max(price, seller_limit), seller_limit, list_price)
        if said is None:
            return {"Failed": {"why": "the seller left", "rounds": rounds}}
        history.append(said)
        price = said["price"]
    return {"Failed": {"why": "no time left", "rounds": 8}}
