# A search that finds nothing is caught.
#
# docs: no `RuntimeError`, and not the end of the list
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 5}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
try:
    found = next(x for x in [1, 2, 3] if x == secret)
except StopIteration:
    found = 0
post(found > 0)
