# The last operand of a chain runs or not.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 9}
# sees: [[],"hidden"]
1 < vault() < post("right")
