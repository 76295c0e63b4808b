"""A support desk with pydantic-ai."""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import approved, call

LIMIT = 200


class Reading(BaseModel):
    topic: Literal["refund", "delivery", "other"]
    angry: bool
    share: float = Field(ge=0, le=1, description="the part of the order to pay back, from 0 to 1")


reader = Agent(
    "openai-chat:gpt-5-mini",
    output_type=Reading,
    instructions="You read messages of customers of a tea shop.",
    retries=2,
)
writer = Agent("openai-chat:gpt-5-mini", instructions="You answer customers in two friendly sentences.")


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
    reading = reader.run_sync(f"What does the customer want?\n\n{message}").output
    if reading.topic == "other" and reading.angry:
        return {"Escalated": {"why": "angry"}}
    if reading.topic == "refund":
        if order is None:
            return {"Escalated": {"why": "no such order"}}
        amount = round(order["total"] * reading.share, 2)
        if amount > 0:
            try:
                refund(id, amount)
            except Exception as why:
                return {"Escalated": {"why": str(why)}}
            return {"Refunded": {"amount": amount}}
    answer = writer.run_sync(f"Answer this message. What we know: {facts(order)}\n\n{message}")
    return {"Answered": {"text": answer.output}}
