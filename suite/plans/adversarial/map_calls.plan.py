# A tool is mapped over a secret list.
#
# observer: public
# world 1: {"vault": ["a"]}
# world 2: {"vault": ["a", "a"]}
# sees: [[],"hidden"]
list(map(lambda x: post("item"), vault()))
