# A field of an object is changed under a secret condition.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from dataclasses import dataclass
@dataclass
class State:
    n: int = 0
s = State()
if vault():
    s.n = 1
post(s.n)
