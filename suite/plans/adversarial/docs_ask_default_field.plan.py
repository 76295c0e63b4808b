# A field of an answer has the default that the plan writes.
#
# docs: A field with a default may be missing in the reply.
# observer: trusted
# world 1: {"read": "a", "ask": {"n": 1}}
# world 2: {"read": "b", "ask": {"n": 1, "to": "eve"}}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
from dataclasses import dataclass
@dataclass
class Bill:
    n: int
    to: str = "bob"
bill = ask(f"Which bill? {read()}", Bill)
pay(bill.to, 1)
