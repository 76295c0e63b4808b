# A target of a comprehension has the name of a variable.
#
# observer: public
# world 1: {"vault": [1, 2]}
# world 2: {"vault": [3]}
# sees: [[["post",[0]]],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
x = 0
ys = [x for x in vault()]
post(x)
post(len(ys))
