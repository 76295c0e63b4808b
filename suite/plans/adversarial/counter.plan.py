# The most frequent word.
#
# observer: trusted
# world 1: {"read": "a a b"}
# world 2: {"read": "b b a"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
from collections import Counter
words = Counter(read().split())
post(words.most_common(1)[0][0])
