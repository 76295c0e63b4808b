# The answer comes from the round in which the plan returns.
#
# docs: a `return` at the top level gives the answer
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 3}
# sees: [[],"hidden"]
secret = vault()
for x in [1, 2, 3]:
    if x == secret:
        return x
return 0
