# Untrusted data writes the field that a planned call takes.
#
# observer: trusted
# world 1: {"known": true, "read": "bob"}
# world 2: {"known": true, "read": "eve"}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
bill = {"to": "bob", "n": 1}
bill["to"] = read()
if known():
    pay(bill["to"], bill["n"])
