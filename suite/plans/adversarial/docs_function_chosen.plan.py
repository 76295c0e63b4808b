# A secret chooses between two functions.
#
# docs: A function is no value: it is called, passed to another function, or given as `key=`.
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# refused: P001, P001
f = post if vault() else note
f("x")
