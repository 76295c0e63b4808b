# A key that is there once it was asked for.
#
# observer: public
# world 1: {"vault": "a"}
# world 2: {"vault": "z"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from collections import defaultdict
d = defaultdict(list)
d["a"].append(1)
d[vault()].append(2)
post(len(d))
