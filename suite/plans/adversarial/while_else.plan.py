# The `else` of a loop that a secret leaves.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 5}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
n = 0
left = True
while n < 3:
    n += 1
    if n == secret:
        break
else:
    left = False
post(left)
