# The width of a field is a secret.
#
# observer: public
# world 1: {"vault": 3}
# world 2: {"vault": 9}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
n = vault()
post(f"{'a':>{n}}")
