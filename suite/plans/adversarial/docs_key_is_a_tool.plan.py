# A list of a secret length is sorted by what a tool gives.
#
# docs: `key=` takes a function, a method such as `str.lower` or `counts.get`, or a function of a module.
# observer: public
# world 1: {"vault": [1, 2]}
# world 2: {"vault": [1, 2, 3]}
# sees: [[],"hidden"]
sorted(vault(), key=post)
