# A float would lose a secret's last digits, and an exact number does not.
#
# docs: Numbers are exact rationals.
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
x = vault()
post((x + 10 ** 30) - 10 ** 30 == x)
