# The length of a secret text.
#
# observer: public
# world 1: {"vault": "short"}
# world 2: {"vault": "much longer"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
post(len(vault()))
