# The width of a field is an argument of `format`.
#
# observer: public
# world 1: {"vault": 3}
# world 2: {"vault": 9}
# sees: [[],"hidden"]
n = vault()
post(len("{:>{}}".format("a", n)))
