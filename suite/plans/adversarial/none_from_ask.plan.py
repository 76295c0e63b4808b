# An answer that is there or not.
#
# observer: trusted
# world 1: {"read": "pay 3", "ask": 3}
# world 2: {"read": "nothing", "ask": null}
# sees 1: [[],null]
# sees 2: [[],"hidden"]
text = read()
amount = ask(f"Which amount? {text}", int)
if amount is None:
    post("nothing")
