# A list of a secret length.
#
# observer: public
# world 1: {"vault": [1]}
# world 2: {"vault": [1, 2, 3]}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
xs = [0, 0]
xs[1:] = vault()
post(len(xs))
