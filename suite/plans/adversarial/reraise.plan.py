# An exception is raised again and caught by its class.
#
# observer: public
# world 1: {"vault": "a"}
# world 2: {"vault": "b"}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
try:
    try:
        {"a": 1}[vault()]
    except LookupError:
        raise
    said = "there"
except KeyError:
    said = "absent"
post(said)
