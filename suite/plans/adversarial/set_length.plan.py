# Equal items of a set are one.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
post(len({1, vault()}))
