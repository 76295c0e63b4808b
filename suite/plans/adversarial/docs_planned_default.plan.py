# What a planned call leaves out.
#
# docs: An argument that is left out takes the default that the tool declares, or is `None` where its type admits it.
# observer: trusted
# world 1: {"read": true}
# world 2: {"read": false}
# sees: [[["post",["done"]]],null]
if read():
    pay("bob", 1)
post("done")
