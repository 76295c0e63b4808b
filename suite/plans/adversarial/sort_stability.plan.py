# The order of items with equal keys.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
rows = sorted(["a", "b"], key=lambda r: secret if r == "a" else 0)
post(rows[0])
