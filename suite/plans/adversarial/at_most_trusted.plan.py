# Calls that trusted data decides are not counted.
#
# observer: trusted
# world 1: {"read": ["a", "b"]}
# world 2: {"read": []}
# sees: [[["post",["after"]]],null]
for item in read():
    few("x")
few("own")
few("own")
few("own")
post("after")
