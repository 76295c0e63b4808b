# A secret index into a public text.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
post("abc"[vault():])
