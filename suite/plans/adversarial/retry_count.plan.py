# How often a call was tried.
#
# observer: trusted
# world 1: {"read": {"each": [{"error": "busy"}, {"error": "busy"}, "ok"]}}
# world 2: {"read": "ok"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
tries = 0
for i in range(3):
    tries += 1
    try:
        text = read()
        break
    except ToolError:
        pass
post(tries)
