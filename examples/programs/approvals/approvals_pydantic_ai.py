"""Approvals with pydantic-ai."""

import re
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import approved, call

FORBIDDEN = ["gifts"]
INSTRUCTIONS = "You read requests for expenses."


class Request(BaseModel):
    kind: Literal["travel", "books", "hardware", "gifts"]
    amount: float = Field(gt=0)
    reason: str


class Doubt(BaseModel):
    question: str | None


reader = Agent("openai-chat:gpt-5-mini", output_type=Request, instructions=INSTRUCTIONS, retries=2)
skeptic = Agent("openai-chat:gpt-5-mini", output_type=Doubt, instructions=INSTRUCTIONS)


def pay(account: str, amount: float, note: str) -> str:
    arguments = {"account": account, "amount": amount, "note": note}
    if amount > 2000:
        raise PermissionError("no expense is above 2000")
    if re.search(r"https?://|www\.", note):
        raise PermissionError("the note has a link")
    if amount > 100 and not approved("pay", arguments):
        raise PermissionError("not approved")
    return call("pay", **arguments)


def objection(request: Request, team: dict) -> str | None:
    if request.kind in FORBIDDEN:
        return f"{request.kind} are not paid"
    if request.amount > team["left"]:
        return f"{team['name']} has {team['left']:.2f} left"
    return None


def main(team: str, text: str) -> dict:
    known = next((t for t in call("teams") if t["name"] == team), None)
    if known is None:
        raise ValueError(f"there is no team {team}")
    request = reader.run_sync(f"What is to be paid, and why?\n\n{text}").output
    if why := objection(request, known):
        return {"Declined": {"why": why}}
    task = f"If a reviewer must ask something about this {request.kind} expense, what? Otherwise null."
    if question := skeptic.run_sync(f"{task}\n\n{text}").output.question:
        return {"Returned": {"question": question}}
    try:
        pay(known["account"], request.amount, request.reason)
    except Exception as why:
        return {"Declined": {"why": str(why)}}
    return {"Paid": {"amount": request.amount}}
