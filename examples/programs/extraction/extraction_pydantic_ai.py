"""Extraction with pydantic-ai."""

from collections import Counter
from decimal import Decimal

from pydantic import BaseModel, Field
from pydantic_ai import Agent


class Position(BaseModel):
    article: str = Field(pattern=r"^[A-Z]{2}-[0-9]{3}$")
    count: int = Field(ge=1)
    price: float = Field(ge=0)


class Order(BaseModel):
    customer: str
    email: str | None = Field(pattern=r"^[^@ ]+@[^@ ]+$")
    day: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    positions: list[Position] = Field(min_length=1, max_length=50)
    total: float


clerk = Agent(
    "openai-chat:gpt-5-mini",
    output_type=Order,
    instructions="You copy orders out of letters. You invent nothing.",
    retries=2,
)


def total(order: Order) -> Decimal:
    return sum((p.count * Decimal(str(p.price)) for p in order.positions), Decimal(0))


def problems(order: Order) -> list[str]:
    found = []
    if total(order) != Decimal(str(order.total)):
        found.append(f"the positions are {total(order):.2f} together, the total is {order.total:.2f}")
    articles = Counter(p.article for p in order.positions)
    return found + [f"{article} is there twice" for article, count in articles.items() if count > 1]


def main(letter: str) -> dict:
    order = clerk.run_sync(f"Copy the order out of this letter.\n\n{letter}").output
    if problems(order):
        wrong = "; ".join(problems(order))
        question = f"You copied this order wrongly: {wrong}. Copy it again.\n\n{letter}"
        order = clerk.run_sync(question).output
    if problems(order):
        return {"Unclear": {"order": order.model_dump(), "problems": problems(order)}}
    return {"Complete": {"order": order.model_dump(), "sum": f"{total(order):.2f}"}}
