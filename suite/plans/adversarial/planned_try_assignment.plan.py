# An error of a tool keeps a variable from being assigned.
#
# observer: trusted
# world 1: {"known": true, "read": {"error": "busy"}}
# world 2: {"known": true, "read": "fine"}
# sees: [[],{"error":"flow","message":"the argument `to` of `pay` must be labeled [] at most"}]
who = "eve"
try:
    read()
    who = "bob"
except ToolError:
    pass
if known():
    pay(who, 1)
