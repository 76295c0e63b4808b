# A block that runs if nothing failed.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees 1: [[],null]
# sees 2: [[],"hidden"]
try:
    1 / vault()
except ZeroDivisionError:
    pass
else:
    post("no error")
