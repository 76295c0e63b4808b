# A date that is read, and one that is none.
#
# observer: trusted
# world 1: {"read": "2024-01-01"}
# world 2: {"read": "never"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from datetime import date
try:
    day = date.fromisoformat(read())
except ValueError:
    day = None
post(day is None)
