# A field beside the secret one is as secret as the object that was changed.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[["post",["x"]]],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from dataclasses import dataclass
@dataclass
class State:
    open: str
    closed: int
s = State("x", vault())
post(s.open)
post(s.closed)
