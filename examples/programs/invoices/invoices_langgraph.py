"""Invoices as a graph: a branch for each mail, then the payments one after the other."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from world import approved, call

model = ChatOpenAI(model="gpt-5-mini")


class Bill(BaseModel):
    supplier: str
    order: str
    amount: float = Field(gt=0)
    iban: str


class Reading(BaseModel):
    bill: Bill | None


class State(TypedDict, total=False):
    known: list[dict]
    orders: list[dict]
    inbox: list[dict]
    bills: Annotated[list[tuple[str, Bill]], operator.add]
    lines: list[dict]


class Job(TypedDict):
    mail: dict


def look_up(state: State) -> State:
    return {"known": call("suppliers"), "orders": call("orders"), "inbox": call("mails")}


def split(state: State) -> list[Send] | str:
    return [Send("read", {"mail": mail}) for mail in state["inbox"]] or "pay"


def read(job: Job) -> State:
    mail = job["mail"]
    clerk = model.with_structured_output(Reading).with_retry(stop_after_attempt=2)
    task = "Copy the bill, or null if there is none."
    bill = clerk.invoke([("system", "You read bills."), ("user", f"{task}\n\n{mail['text']}")]).bill
    return {"bills": [(mail["id"], bill)] if bill else []}


def transfer(iban: str, amount: float, reference: str) -> str:
    arguments = {"iban": iban, "amount": amount, "reference": reference}
    if iban not in [supplier["iban"] for supplier in call("suppliers")]:
        raise PermissionError("no account of a supplier")
    if amount > 10000:
        raise PermissionError("more than a program may transfer")
    if amount > 1000 and not approved("transfer", arguments):
        raise PermissionError("not approved")
    return call("transfer", **arguments)


def compare(bill: Bill, orders: list[dict], known: list[dict]) -> tuple[bool, str]:
    supplier = next((s for s in known if s["name"] == bill.supplier), None)
    if supplier is None:
        return False, f"unknown supplier {bill.supplier}"
    if supplier["iban"] != bill.iban:
        return False, "another account than ours"
    matching = (o for o in orders if o["number"] == bill.order and o["supplier"] == bill.supplier)
    order = next(matching, None)
    if order is None:
        return False, f"no order {bill.order}"
    if abs(order["amount"] - bill.amount) > 0.01:
        return False, f"ordered for {order['amount']:.2f}"
    return True, "" if order["delivered"] else "not delivered"


def pay(state: State) -> State:
    lines = []
    places = {mail["id"]: number for number, mail in enumerate(state["inbox"])}
    for mail, bill in sorted(state.get("bills", []), key=lambda pair: places[pair[0]]):
        ok, note = compare(bill, state["orders"], state["known"])
        line = {"mail": mail, "state": "waiting" if ok else "disputed", "note": note}
        if ok and not note:
            try:
                line = {**line, "state": "paid", "note": transfer(bill.iban, bill.amount, bill.order)}
            except Exception as why:
                line = {**line, "state": "disputed", "note": str(why)}
        lines.append(line)
    return {"lines": lines}


graph = StateGraph(State)
for node in (look_up, read, pay):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "look_up")
graph.add_conditional_edges("look_up", split, ["read", "pay"])
graph.add_edge("read", "pay")
graph.add_edge("pay", END)
app = graph.compile()


def main() -> list[dict]:
    return app.invoke({}, {"max_concurrency": 4})["lines"]
