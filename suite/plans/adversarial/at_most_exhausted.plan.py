# Untrusted data uses up the calls that the plan makes itself.
#
# observer: trusted
# world 1: {"read": ["a"]}
# world 2: {"read": ["a", "b", "c", "d"]}
# sees 1: [[["post",["after"]]],null]
# sees 2: [[],"hidden"]
for item in read():
    few("x")
post("after")
