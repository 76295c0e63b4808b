# A key is there or not after two dictionaries were merged.
#
# docs: a mutation rebinds the variable; `d | e`
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
d = {"a": 1}
if vault():
    d |= {"k": 2}
post("k" in d)
