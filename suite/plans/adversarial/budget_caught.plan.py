# What uses up the calls is caught by nobody.
#
# observer: trusted
# world 1: {"read": [1]}
# world 2: {"read": [1, 2, 3]}
# sees 1: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
# sees 2: [[],"hidden"]
done = 0
try:
    for item in read():
        few("x")
        done += 1
except Exception:
    done = -1
post(done)
