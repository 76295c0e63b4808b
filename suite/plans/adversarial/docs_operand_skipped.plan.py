# A tool is the second operand of a secret.
#
# docs: Python's truth values
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],"hidden"]
vault() and post("second")
