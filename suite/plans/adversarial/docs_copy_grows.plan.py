# A copy of a list grows under a secret condition; the list itself is told.
#
# docs: The remedy is a copy: `b = list(a)`.
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[["post",[2]]],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
a = [1, 2]
b = list(a)
if vault():
    b.append(3)
post(len(a))
post(len(b))
