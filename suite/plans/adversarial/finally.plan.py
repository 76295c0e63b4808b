# A block that runs whatever happens.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
state = "before"
try:
    1 / vault()
    state = "after"
except ZeroDivisionError:
    pass
finally:
    post(state)
