"""What the programs in Python do with the world: the tools answer from the case that is run.

A case has the replies and the results of tools that `entail run --script` gets, so all versions of a program
meet the same world. `scripts/programs` sets `CASE`.
"""

import json
import os
import threading

with open(os.environ["CASE"], encoding="utf-8") as file:
    CASE = json.load(file)

calls: list[dict] = []
_used: set[int] = set()
_lock = threading.Lock()


def call(tool: str, **arguments):
    """Calls a tool: gives the next result that the case has for it."""
    with _lock:
        calls.append({"tool": tool, "arguments": arguments})
        for number, entry in enumerate(CASE["script"]):
            if entry.get("call") == tool and number not in _used:
                if not entry.get("repeat"):
                    _used.add(number)
                if "fails" in entry:
                    raise RuntimeError(entry["fails"])
                return entry["result"]
    raise RuntimeError(f"the case has no result for {tool}")


def approved(tool: str, arguments: dict) -> bool:
    """Asks a person about a call."""
    return CASE.get("approved", False)
