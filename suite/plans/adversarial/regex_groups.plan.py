# Which group of a pattern matched.
#
# observer: trusted
# world 1: {"read": "a"}
# world 2: {"read": "b"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
import re
m = re.search(r"(a)|(b)", read())
post(m.group(1) is None)
