# One argument of a planned call is computed in the branch.
#
# docs: If one argument can't be moved, none is.
# observer: trusted
# world 1: {"read": "5"}
# world 2: {"read": "7"}
# sees: [[],"hidden"]
text = read()
if text:
    pay("bob", int("1"), text)
