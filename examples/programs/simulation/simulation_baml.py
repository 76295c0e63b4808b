"""Simulation: the program around the functions of simulation.baml."""

from baml_client.sync_client import b
from baml_client.types import Move


def told(history: list[dict]) -> str:
    return "\n".join(f"{r['by']}: {r['says']} ({r['price']})" for r in history)


def round_of(move: Move, by: str, last: float, low: float, high: float) -> dict | None:
    if move.kind == "offer":
        return {"by": by, "says": move.words, "price": max(low, min(high, move.price or last))}
    return {"by": by, "says": "Agreed.", "price": last} if move.kind == "accept" else None


def main(list_price: float, buyer_limit: float, seller_limit: float) -> dict:
    history = [{"by": "seller", "says": "For sale.", "price": list_price}]
    price = list_price
    for rounds in range(1, 9):
        move = b.Bid(told(history), buyer_limit)
        if move.kind == "accept" and price <= buyer_limit:
            return {"Agreed": {"price": price, "rounds": rounds}}
        said = round_of(move, "buyer", min(price, buyer_limit), 0, buyer_limit)
        if said is None:
            return {"Failed": {"why": "the buyer left", "rounds": rounds}}
        history.append(said)
        price = said["price"]
        move = b.Ask(told(history), seller_limit)
        if move.kind == "accept" and price >= seller_limit:
            return {"Agreed": {"price": price, "rounds": rounds}}
        said = round_of(move, "seller", max(price, seller_limit), seller_limit, list_price)
        if said is None:
            return {"Failed": {"why": "the seller left", "rounds": rounds}}
        history.append(said)
        price = said["price"]
    return {"Failed": {"why": "no time left", "rounds": 8}}
