# A search stops at a secret place, and each step is a call.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 3}
# sees: [[["post",[1]]],"hidden"]
secret = vault()
any(post(x) == secret for x in [1, 2, 3])
