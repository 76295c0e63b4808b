# The type of a secret.
#
# observer: public
# world 1: {"vault": "1"}
# world 2: {"vault": 1}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
post(isinstance(vault(), str))
