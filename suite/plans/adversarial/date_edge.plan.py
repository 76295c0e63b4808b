# A day that a month does not have.
#
# observer: public
# world 1: {"vault": 29}
# world 2: {"vault": 31}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from datetime import date
try:
    day = date(2024, 2, 1).replace(day=vault())
except ValueError:
    day = date(2024, 2, 1)
post(day.month == 2)
