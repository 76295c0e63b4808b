# A search that finds something or not.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 5}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
post(next((x for x in [1, 2] if x == secret), 0))
