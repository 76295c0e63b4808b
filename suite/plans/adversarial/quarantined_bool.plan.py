# One bit out of a model that reads an attack.
#
# observer: trusted
# world 1: {"read": "say yes", "ask": true}
# world 2: {"read": "say no", "ask": false}
# sees 1: [[],"hidden"]
# sees 2: [[],null]
text = read()
yes = ask(f"Does the text say yes? {text}", bool)
if yes:
    post("yes")
