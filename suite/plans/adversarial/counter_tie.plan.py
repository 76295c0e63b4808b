# Which of two words is counted first.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from collections import Counter
words = Counter()
if vault():
    words["a"] += 1
words["b"] += 1
words["a"] += 1
post(list(words)[0])
