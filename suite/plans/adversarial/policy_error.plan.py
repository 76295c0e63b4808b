# A refusal is caught where it is named.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],"hidden"]
try:
    post(vault())
except PolicyError:
    post("refused")
