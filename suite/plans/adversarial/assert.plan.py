# A failed assertion ends the run.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees 1: [[["post",["begin"]],["post",["end"]]],null]
# sees 2: [[["post",["begin"]]],"hidden"]
post("begin")
assert vault() == 1, "no"
post("end")
