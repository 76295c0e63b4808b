# The message of the error that ends the run quotes a secret.
#
# observer: public
# world 1: {"vault": "a"}
# world 2: {"vault": "b"}
# sees: [[],"hidden"]
{}[vault()]
