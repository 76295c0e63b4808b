# A tool is called for each item that is sorted.
#
# observer: public
# world 1: {"vault": [2, 1]}
# world 2: {"vault": [1]}
# sees: [[],"hidden"]
sorted(vault(), key=lambda x: post("key"))
