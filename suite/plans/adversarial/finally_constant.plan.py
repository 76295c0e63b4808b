# A constant in a block that runs whatever happens.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees 1: [[["post",["finally"]]],"hidden"]
# sees 2: [[["post",["finally"]]],null]
try:
    1 / vault()
finally:
    post("finally")
