# Which of two functions has the name.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# refused: P001, P001
def f():
    return 1

if vault():
    def f():
        return 2
post(f())
