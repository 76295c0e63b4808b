# A check of a type fails for one of two secrets.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": "1"}
# sees 1: [[["post",["begin"]],["post",["end"]]],null]
# sees 2: [[["post",["begin"]]],"hidden"]
post("begin")
x: int = vault()
post("end")
