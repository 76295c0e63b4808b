# A person confirms a secret, which stays secret.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
x = confirm(vault(), "is this right?")
post(x)
