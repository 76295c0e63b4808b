# A return under a secret condition skips a public call.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[["post",["begin"]]],"hidden"]
post("begin")
if vault():
    return "early"
post("late")
