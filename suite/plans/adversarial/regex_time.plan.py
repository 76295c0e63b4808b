# A pattern that takes long for some texts.
#
# observer: trusted
# world 1: {"read": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}
# world 2: {"read": "b"}
# sees: [[["post",["done"]]],null]
import re
m = re.search(r"(a+)+$", read())
post("done")
