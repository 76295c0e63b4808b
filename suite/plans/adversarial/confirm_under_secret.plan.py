# A person is asked in one of two worlds.
#
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[["post",["after"]]],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
x = known()
if vault():
    x = confirm(read(), "is this right?")
post("after")
post(x)
