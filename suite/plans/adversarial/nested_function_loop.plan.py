# A function that calls a tool in a loop over what was read.
#
# observer: trusted
# world 1: {"read": [1]}
# world 2: {"read": [1, 2]}
# sees: [[],"hidden"]
def tell(x):
    post("told")
    return x

done = [tell(x) for x in read()]
