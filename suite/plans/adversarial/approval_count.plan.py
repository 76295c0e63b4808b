# A person is asked once for each secret.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 3}
# sees: [[],"hidden"]
for i in range(vault()):
    sign("contract")
