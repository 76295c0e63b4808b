# The class of an exception is chosen by a secret.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
secret = vault()
try:
    if secret == 0:
        {}["k"]
    [][3]
except KeyError:
    kind = "key"
except IndexError:
    kind = "index"
post(kind)
