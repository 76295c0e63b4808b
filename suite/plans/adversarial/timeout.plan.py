# A tool that is late: the handler runs, and what follows it shows nothing of it.
#
# observer: trusted
# world 1: {"read": {"late": true}}
# world 2: {"read": "in time"}
# sees: [[["post",["done"]]],null]
# calls 1: [["read",[]],["note",["late"]],["post",["done"]]]
# calls 2: [["read",[]],["post",["done"]]]
try:
    text = read()
except TimeoutError:
    note("late")
except ToolError:
    note("broken")
post("done")
