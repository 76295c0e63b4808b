# The right operand runs or not.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],"hidden"]
vault() and post("right")
