# Whether a call is refused depends on a secret.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
x = 0
if secret == 1:
    x = secret
try:
    post(x)
    said = "admitted"
except PolicyError:
    said = "refused"
post(said)
