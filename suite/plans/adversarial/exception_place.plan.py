# How far a block came before an exception.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 3}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
last = 0
try:
    for i in [1, 2, 3]:
        last = i
        10 / (secret - i)
except ZeroDivisionError:
    pass
post(last)
