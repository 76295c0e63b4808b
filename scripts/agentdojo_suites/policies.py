"""Kinds of policies that are compared: the one of a suite, and weaker languages for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Policy = dict[str, Any]


def own(policy: Policy) -> Policy:
    """Returns the policy as it is."""
    return policy


def strict(policy: Policy) -> Policy:
    """Returns the policy without planned calls, sets and labels of parts."""
    plain = copy.deepcopy(policy)
    for table in plain.get("tools", {}).values():
        if "fields" in table:
            # What one part is, the whole is.
            table["result"] = "untrusted"
        for key in ("control", "among", "fields", "at_most"):
            table.pop(key, None)
    plain.pop("delegate", None)
    return plain


KINDS: dict[str, Callable[[Policy], Policy]] = {"own": own, "strict": strict}
