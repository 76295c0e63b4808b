# A loop posts in each of its rounds.
#
# docs: 1,000 rounds at most, then the run ends with the error `limit`
# observer: public
# world 1: {"vault": 2}
# world 2: {"vault": 3}
# sees: [[],"hidden"]
n = vault()
while n > 0:
    n -= 1
    post("tick")
