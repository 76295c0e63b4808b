# Untrusted data chooses between two payments of the plan.
#
# observer: trusted
# world 1: {"read": "a"}
# world 2: {"read": "b"}
# sees: [[["post",["done"]]],null]
if read() == "a":
    pay("bob", 1)
else:
    pay("ann", 2)
post("done")
