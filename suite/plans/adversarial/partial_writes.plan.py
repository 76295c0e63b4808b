# Calls before one that is refused.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[["post",["first"]],["post",["second"]]],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
post("first")
keep(vault())
post("second")
post(vault())
post("third")
