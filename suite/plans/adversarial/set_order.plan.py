# The first item of a set.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 9}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
s = {5}
s.add(vault())
post(list(s)[0])
