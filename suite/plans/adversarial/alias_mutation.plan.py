# A second name for a list is changed under a secret condition.
#
# observer: both
# world 1: {"vault": true}
# world 2: {"vault": false}
# refused: P010
a = [1]
b = a
if vault():
    b.append(2)
post(a)
