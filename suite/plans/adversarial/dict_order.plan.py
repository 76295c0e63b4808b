# The order of the keys of a dictionary.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
d = {}
if vault():
    d["a"] = 1
d["b"] = 2
d["a"] = 1
post(list(d)[0])
