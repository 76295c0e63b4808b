# A tool that is late: the handler tells it.
#
# observer: trusted
# world 1: {"read": {"late": true}}
# world 2: {"read": "in time"}
# sees 1: [[],"hidden"]
# sees 2: [[["post",["done"]]],null]
# calls 1: [["read",[]]]
try:
    text = read()
except TimeoutError:
    post("late")
post("done")
