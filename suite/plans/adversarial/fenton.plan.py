# An unassigned variable tells which branch was taken.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
flag = 1
if secret:
    flag = 0
seen = 1
if flag:
    seen = 0
post(seen)
