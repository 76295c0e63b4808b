# How many items are left over.
#
# observer: public
# world 1: {"vault": [1, 2]}
# world 2: {"vault": [1, 2, 3]}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
first, *rest = vault()
post(len(rest))
