# A loop without end in one world, and a call that would tell of it.
#
# docs: They end the run: no `finally` runs after them.
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees 1: [[],"hidden"]
# sees 2: [[["post",["finally"]]],null]
secret = vault()
try:
    while secret:
        pass
finally:
    post("finally")
