# A list is changed through a dictionary under a secret condition.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# refused: P010
xs = [1]
d = {"xs": xs}
if vault():
    d["xs"].append(2)
post(len(xs))
