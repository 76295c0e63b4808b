# A secret makes a loop long.
#
# observer: public
# world 1: {"vault": 1000000}
# world 2: {"vault": 1}
# sees 1: [[["post",["begin"]]],"hidden"]
# sees 2: [[["post",["begin"]],["post",["end"]]],null]
post("begin")
n = 0
for i in range(vault()):
    n += i
post("end")
