# `True` and 1 are the same key.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
d = {1: "a", vault(): "b"}
post(d[1])
