# The item at which untrusted data leaves a loop.
#
# observer: trusted
# world 1: {"read": "ann"}
# world 2: {"read": "bob"}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
name = read()
for who in ["ann", "bob", "eve"]:
    if who == name:
        break
pay(who, 1)
