# A loop ends when its rounds are used up.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees 1: [[["post",["begin"]]],"hidden"]
# sees 2: [[["post",["begin"]],["post",["end"]]],null]
post("begin")
secret = vault()
while secret:
    pass
post("end")
