# A function sees the item at which a secret left the loop.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 3}
# refused: P001, P001
secret = vault()
for i in [1, 2, 3]:
    get = lambda: i
    if i == secret:
        break
post(get())
