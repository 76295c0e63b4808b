# A secret decides how much work lies between two looks at the clock.
#
# docs: give the time at which the run began, whenever they are called
# observer: public
# world 1: {"vault": 1, "clock": 1764000000}
# world 2: {"vault": 9, "clock": 1764000000}
# sees: [[["post",[0]]],null]
from datetime import datetime
began = datetime.now()
for i in range(vault()):
    echo(i)
post((datetime.now() - began).total_seconds())
