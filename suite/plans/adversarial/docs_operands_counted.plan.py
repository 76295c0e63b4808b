# Operands are tools, and one of them is evaluated in some worlds only.
#
# docs: each operand is evaluated at most once
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 5}
# sees 1: [[],"hidden"]
# sees 2: [[],null]
x = vault()
if 0 < x < 3 and post("small") is None:
    post("seen")
