# A value that no member has.
#
# observer: public
# world 1: {"vault": "a"}
# world 2: {"vault": "z"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from enum import Enum
class Kind(Enum):
    A = "a"
try:
    kind = Kind(vault())
except ValueError:
    kind = None
post(kind is None)
