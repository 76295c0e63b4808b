"""Extraction: the program around the functions of extraction.baml."""

from collections import Counter
from decimal import Decimal

from baml_client.sync_client import b
from baml_client.types import Order


def total(order: Order) -> Decimal:
    return sum((p.count * Decimal(str(p.price)) for p in order.positions), Decimal(0))


def problems(order: Order) -> list[str]:
    found = []
    if total(order) != Decimal(str(order.total)):
        found.append(f"the positions are {total(order):.2f} together, the total is {order.total:.2f}")
    articles = Counter(p.article for p in order.positions)
    return found + [f"{article} is there twice" for article, count in articles.items() if count > 1]


def main(letter: str) -> dict:
    order = b.Extract(letter)
    if problems(order):
        order = b.Repair(letter, "; ".join(problems(order)))
    if problems(order):
        return {"Unclear": {"order": order.model_dump(), "problems": problems(order)}}
    return {"Complete": {"order": order.model_dump(), "sum": f"{total(order):.2f}"}}
