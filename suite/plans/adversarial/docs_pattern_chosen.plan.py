# A secret chooses a pattern.
#
# docs: patterns are literals and match in linear time
# observer: public
# world 1: {"vault": true}
# world 2: {"vault": false}
# refused: P001
import re
p = "a+" if vault() else "b+"
post(re.findall(p, "aab"))
