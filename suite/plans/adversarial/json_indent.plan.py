# A secret is the indentation of JSON.
#
# observer: public
# world 1: {"vault": 1}
# world 2: {"vault": 4}
# sees: [[],{"error":"flow","message":"the argument `x` of `post` must be labeled [] at most"}]
import json
post(json.dumps({"a": 1}, indent=vault()))
