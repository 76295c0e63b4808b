# The message of an exception quotes a secret.
#
# observer: public
# world 1: {"vault": "a"}
# world 2: {"vault": "b"}
# sees: [[],"hidden"]
try:
    {}[vault()]
except KeyError as e:
    post(str(e))
