# The value of a member comes from a secret.
#
# observer: public
# world 1: {"vault": "a"}
# world 2: {"vault": "b"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from enum import Enum
class Kind(Enum):
    A = "a"
    B = "b"
post(Kind(vault()) == Kind.A)
