# How a number is rounded.
#
# observer: public
# world 1: {"vault": 0.125}
# world 2: {"vault": 0.135}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
post(f"{vault():.1f}" == "0.1")
