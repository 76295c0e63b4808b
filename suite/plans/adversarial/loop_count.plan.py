# The number of rounds is the length of what was read.
#
# observer: trusted
# world 1: {"read": ["a"]}
# world 2: {"read": ["a", "b", "c"]}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
n = 0
for item in read():
    n += 1
post(n)
