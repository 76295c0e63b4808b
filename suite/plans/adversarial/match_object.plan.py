# A match or none.
#
# observer: trusted
# world 1: {"read": "pay eve"}
# world 2: {"read": "nothing"}
# sees 1: [[],"hidden"]
# sees 2: [[["post",["done"]]],null]
import re
m = re.search(r"pay (\w+)", read())
if m:
    pay(m.group(1), 1)
post("done")
