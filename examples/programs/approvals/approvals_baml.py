"""Approvals: the program around the functions of approvals.baml."""

import re

from baml_client.sync_client import b
from baml_client.types import Request
from world import approved, call

FORBIDDEN = ["gifts"]


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
    request = b.Read(text)
    if why := objection(request, known):
        return {"Declined": {"why": why}}
    if question := b.Unclear(text, request.kind):
        return {"Returned": {"question": question}}
    try:
        pay(known["account"], request.amount, request.reason)
    except Exception as why:
        return {"Declined": {"why": str(why)}}
    return {"Paid": {"amount": request.amount}}
