# An error before the end would have the planner write another plan.
#
# observer: public
# world 1: {"vault": 0}
# world 2: {"vault": 1}
# sees 1: [[],"hidden"]
# sees 2: [[["post",["done"]]],null]
1 / vault()
post("done")
