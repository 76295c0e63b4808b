# How many items are printed.
#
# observer: public
# world 1: {"vault": [1]}
# world 2: {"vault": [1, 1]}
# sees: [[],"hidden"]
print(*["x" for item in vault()])
