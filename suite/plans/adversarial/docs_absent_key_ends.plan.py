# An absent key ends the run in one world.
#
# docs: Reading an absent key of a `defaultdict` ends the run
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees 1: [[["post",["after"]]],null]
# sees 2: [[],"hidden"]
from collections import defaultdict
d = defaultdict(int)
if vault():
    d["a"] += 1
try:
    x = d["a"]
except KeyError:
    x = 0
post("after")
