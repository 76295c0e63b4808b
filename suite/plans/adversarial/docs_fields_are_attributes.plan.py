# An answer has a field in one world, and the error is caught.
#
# docs: Fields of what a tool gives are items and attributes
# observer: public
# world 1: {"vault": {"id": 1}}
# world 2: {"vault": {"name": "x"}}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
row = vault()
try:
    x = row.id
except AttributeError:
    x = 0
post(x == 0)
