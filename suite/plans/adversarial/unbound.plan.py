# A variable that is bound or not.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees 1: [[],null]
# sees 2: [[],"hidden"]
if vault():
    x = 1
try:
    x
except NameError:
    post("unbound")
