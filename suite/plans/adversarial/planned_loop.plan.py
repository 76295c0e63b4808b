# A trusted loop in an untrusted branch makes its own arguments.
#
# observer: trusted
# world 1: {"read": true}
# world 2: {"read": false}
# sees: [[["post",["done"]]],null]
if read():
    for who, n in [("bob", 1), ("ann", 2)]:
        pay(who, n)
post("done")
