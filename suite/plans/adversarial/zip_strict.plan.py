# Lists of different lengths raise an exception.
#
# observer: public
# world 1: {"vault": [1]}
# world 2: {"vault": [1, 2]}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
try:
    pairs = list(zip([0], vault(), strict=True))
    same = True
except ValueError:
    same = False
post(same)
