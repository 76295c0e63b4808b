# A model is asked about a secret, and its answer decides.
#
# docs: The answer has the labels of the prompt.
# observer: public
# world 1: {"vault": "x", "ask": true}
# world 2: {"vault": "y", "ask": false}
# sees 1: [[],"hidden"]
# sees 2: [[],null]
if ask(f"Is it due? {vault()}", bool):
    post("due")
