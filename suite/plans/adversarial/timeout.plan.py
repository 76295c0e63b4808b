# A tool that is late.
#
# observer: trusted
# world 1: {"read": {"late": true}}
# world 2: {"read": "in time"}
# sees 1: [[],"hidden"]
# sees 2: [[["post",["done"]]],null]
try:
    text = read()
except TimeoutError:
    post("late")
post("done")
