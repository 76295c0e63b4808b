# A refused call inside of a bare `except`, and what runs after it.
#
# docs: `except Exception` and `except:` do not catch `PolicyError`
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],"hidden"]
try:
    post(vault())
except:
    post("caught")
finally:
    post("finally")
post("after")
