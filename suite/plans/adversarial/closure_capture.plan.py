# A function sees a variable that changed later.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
x = 0

def get():
    return x

if vault():
    x = 1
post(get())
