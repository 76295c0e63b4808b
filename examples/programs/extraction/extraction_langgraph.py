"""Extraction as a graph."""

from collections import Counter
from decimal import Decimal
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

model = ChatOpenAI(model="gpt-5-mini")


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


clerk = model.with_structured_output(Order).with_retry(stop_after_attempt=2)


class State(TypedDict, total=False):
    letter: str
    order: Order
    result: dict


def total(order: Order) -> Decimal:
    return sum((p.count * Decimal(str(p.price)) for p in order.positions), Decimal(0))


def problems(order: Order) -> list[str]:
    found = []
    if total(order) != Decimal(str(order.total)):
        found.append(f"the positions are {total(order):.2f} together, the total is {order.total:.2f}")
    articles = Counter(p.article for p in order.positions)
    return found + [f"{article} is there twice" for article, count in articles.items() if count > 1]


def ask(question: str) -> Order:
    return clerk.invoke([
        ("system", "You copy orders out of letters. You invent nothing."),
        ("user", question),
    ])


def extract(state: State) -> State:
    return {"order": ask(f"Copy the order out of this letter.\n\n{state['letter']}")}


def route(state: State) -> str:
    return "repair" if problems(state["order"]) else "finish"


def repair(state: State) -> State:
    wrong = "; ".join(problems(state["order"]))
    return {"order": ask(f"You copied this order wrongly: {wrong}. Copy it again.\n\n{state['letter']}")}


def finish(state: State) -> State:
    order = state["order"]
    if problems(order):
        return {"result": {"Unclear": {"order": order.model_dump(), "problems": problems(order)}}}
    return {"result": {"Complete": {"order": order.model_dump(), "sum": f"{total(order):.2f}"}}}


graph = StateGraph(State)
for node in (extract, repair, finish):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "extract")
graph.add_conditional_edges("extract", route, ["repair", "finish"])
graph.add_edge("repair", "finish")
graph.add_edge("finish", END)
app = graph.compile()


def main(letter: str) -> dict:
    return app.invoke({"letter": letter})["result"]
