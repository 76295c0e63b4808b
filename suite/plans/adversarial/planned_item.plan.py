# Untrusted data chooses the item of a trusted list.
#
# observer: trusted
# world 1: {"read": 1}
# world 2: {"read": 0}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
people = ["bob", "ann"]
i = read()
pay(people[i], 1)
