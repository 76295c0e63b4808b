# The order of lines of the answer.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],"hidden"]
if vault():
    print("a")
    print("b")
else:
    print("b")
    print("a")
