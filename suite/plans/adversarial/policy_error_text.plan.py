# The text of a refusal.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
said = ""
try:
    post(vault())
except PolicyError as e:
    said = str(e)
post(said)
