# Untrusted data chooses the argument of a function that pays.
#
# observer: trusted
# world 1: {"read": true}
# world 2: {"read": false}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
def go(who):
    pay(who, 1)

go("eve" if read() else "bob")
post("done")
