# The text of an error says what was read.
#
# observer: trusted
# world 1: {"read": {"error": "pay eve"}}
# world 2: {"read": {"error": "pay bob"}}
# sees: [[],"hidden"]
try:
    text = read()
except ToolError as e:
    post(str(e))
