"""A support desk: the program around the functions of support.baml."""

from baml_client.sync_client import b
from baml_client.types import Topic
from world import approved, call

LIMIT = 200


def refund(order_id: str, amount: float) -> str:
    if amount > LIMIT:
        raise PermissionError("more than the desk may pay")
    if amount > 50 and not approved("refund", {"id": order_id, "amount": amount}):
        raise PermissionError("not approved")
    return call("refund", id=order_id, amount=amount)


def facts(order: dict | None) -> str:
    if order is None:
        return "There is no such order."
    if order["days"] > 14 and not order["delivered"]:
        return "It is late; we send it again."
    return "It was delivered." if order["delivered"] else f"It was sent {order['days']} days ago."


def main(id: str, message: str) -> dict:
    own: list[dict] = call("orders")
    order = next((o for o in own if o["id"] == id), None)
    reading = b.Read(message)
    if reading.topic == Topic.OTHER and reading.angry:
        return {"Escalated": {"why": "angry"}}
    if reading.topic == Topic.REFUND:
        if order is None:
            return {"Escalated": {"why": "no such order"}}
        amount = round(order["total"] * reading.share, 2)
        if amount > 0:
            try:
                refund(id, amount)
            except Exception as why:
                return {"Escalated": {"why": str(why)}}
            return {"Refunded": {"amount": amount}}
    return {"Answered": {"text": b.Answer(message, facts(order))}}
