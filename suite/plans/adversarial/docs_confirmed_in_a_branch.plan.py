# A confirmed value is used where a mail decides.
#
# docs: Under a condition that was read, everything is untrusted, the confirmed value, too: confirm before it.
# observer: trusted
# world 1: {"read": {"each": ["bob", true]}}
# world 2: {"read": {"each": ["bob", false]}}
# sees 1: [[],"hidden"]
# sees 2: [[],null]
to = confirm(read(), "the payee")
if read():
    post(to)
