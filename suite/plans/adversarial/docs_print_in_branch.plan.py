# A line is printed in one world.
#
# docs: `print` | in a statement at the top level
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# sees: [[],"hidden"]
print("begin")
if vault():
    print("secret")
print("end")
