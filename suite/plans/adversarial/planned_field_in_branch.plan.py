# A field is overwritten where untrusted data decides.
#
# observer: trusted
# world 1: {"read": true}
# world 2: {"read": false}
# sees 1: [[],"hidden"]
# sees 2: [[["post",["done"]]],null]
bill = {"to": "bob", "n": 1}
if read():
    bill["to"] = "eve"
if read():
    pay(bill["to"], bill["n"])
post("done")
