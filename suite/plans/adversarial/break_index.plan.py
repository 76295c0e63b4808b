# The item at which a loop ends.
#
# observer: public
# world 1: {"vault": 2}
# world 2: {"vault": 5}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
for i in range(10):
    if i == secret:
        break
post(i)
