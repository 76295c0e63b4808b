# A secret through text and back.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 2}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
import json
post(json.loads(json.dumps({"a": vault()}))["a"])
