# A function that posts is called under a secret condition.
#
# docs: no recursion; they may call tools
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees 1: [[],"hidden"]
# sees 2: [[],null]
def tell(text):
    post(text)
    return text
if vault():
    tell("called")
