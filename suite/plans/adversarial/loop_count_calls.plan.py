# One public call for each item.
#
# observer: trusted
# world 1: {"read": ["a"]}
# world 2: {"read": ["a", "b", "c"]}
# sees: [[],"hidden"]
for item in read():
    post("tick")
