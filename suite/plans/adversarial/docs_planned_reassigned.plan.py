# The variable of a planned call is read from the mail in a later round.
#
# docs: a variable that is bound before the statement and not assigned between it and the call
# observer: trusted
# world 1: {"read": "bob"}
# world 2: {"read": "eve"}
# sees: [[],"hidden"]
to = "ann"
for i in range(2):
    if read():
        pay(to, 1)
    to = read()
