# Whether the statement after the one that may fail runs.
#
# docs: What follows it is at that label, too.
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees 1: [[],null]
# sees 2: [[],"hidden"]
try:
    x = 1 / vault()
    post("alive")
except ZeroDivisionError:
    pass
