# The answer is a list of a secret length.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],"hidden"]
xs = ["a"]
if vault():
    xs = ["a", "b"]
return xs
