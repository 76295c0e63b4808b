# A secret makes a text too large.
#
# observer: public
# world 1: {"vault": 1000000000000}
# world 2: {"vault": 1}
# sees 1: [[["post",["begin"]]],"hidden"]
# sees 2: [[["post",["begin"]],["post",["end"]]],null]
post("begin")
try:
    x = "a" * vault()
except Exception:
    pass
post("end")
