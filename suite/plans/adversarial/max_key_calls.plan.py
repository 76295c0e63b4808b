# The largest item by what a tool gives.
#
# observer: public
# world 1: {"vault": [1]}
# world 2: {"vault": []}
# sees: [[],"hidden"]
max(vault(), key=lambda x: post("key"), default=0)
