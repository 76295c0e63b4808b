# A check of a type fails inside of a `try`.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": "1"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
try:
    x: int = vault()
    fits = True
except TypeError:
    fits = False
post(fits)
