"""Invoices: the program around the function of invoices.baml."""

import asyncio

from baml_client.async_client import b
from baml_client.types import Bill
from world import approved, call


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


async def read(text: str, limit: asyncio.Semaphore) -> Bill | None:
    async with limit:
        return await b.Read(text)


async def run() -> list[dict]:
    known, orders, inbox = call("suppliers"), call("orders"), call("mails")
    limit = asyncio.Semaphore(4)
    bills = await asyncio.gather(*(read(mail["text"], limit) for mail in inbox))
    lines = []
    for mail, bill in zip(inbox, bills):
        if bill is None:
            continue
        ok, note = compare(bill, orders, known)
        state = "waiting" if ok else "disputed"
        if ok and not note:
            try:
                state, note = "paid", transfer(bill.iban, bill.amount, bill.order)
            except Exception as why:
                state, note = "disputed", str(why)
        lines.append({"mail": mail["id"], "state": state, "note": note})
    return lines


def main() -> list[dict]:
    return asyncio.run(run())
