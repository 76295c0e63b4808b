# An annotation says that a field is there, and not who wrote it.
#
# observer: trusted
# world 1: {"read": {"to": "bob", "n": 1}}
# world 2: {"read": {"to": "eve", "n": 2}}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
from dataclasses import dataclass
@dataclass
class Bill:
    to: str
    n: int
bill: Bill = read()
if known() is None:
    pay(bill.to, bill.n)
