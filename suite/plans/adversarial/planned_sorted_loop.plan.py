# Untrusted data sorts the list that a loop goes over.
#
# observer: trusted
# world 1: {"read": 1}
# world 2: {"read": -1}
# sees: [[],"hidden"]
n = read()
for who in sorted(["ann", "bob"], key=lambda w: n * len(w + w[0]) if w == "ann" else 0):
    pay(who, 1)
    break
post("done")
