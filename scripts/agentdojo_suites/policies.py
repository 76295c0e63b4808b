"""Kinds of policies that are compared: the one of a suite, weaker languages for it, and rules of others."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from typing import Any

from agentdojo_suites.harness import HERE, suite

Policy = dict[str, Any]

# Suites of a kind that is not for all of them.
SUITES_OF = {"shared": ("workspace",)}

# A bound of sources alone.
SOURCES = {"trusted": {"sources": [], "readers": []}}


def own(policy: Policy, name: str) -> Policy:
    """Returns the policy as it is."""
    return policy


def strict(policy: Policy, name: str) -> Policy:
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


def camel(policy: Policy, name: str) -> Policy:
    """Returns the rules of CaMeL as we read them, over what the policy says of results.

    Conditions don't count, as in its mode `NORMAL`, and nobody is asked.
    """
    rules = tomllib.loads((HERE / name / "camel.toml").read_text())
    changed = {**copy.deepcopy(policy), **{k: v for k, v in rules.items() if k != "tools"}}
    changed.pop("delegate", None)
    for function in suite(name).tools:
        table = changed["tools"].setdefault(function.name, {})
        kept = {k: v for k, v in table.items() if k in ("effect", "result", "fields")}
        rule = rules["tools"].get(function.name, {})
        # A rule about sources says nothing of readers.
        named = {p: SOURCES[bound] for p, bound in rule.get("bounds", {}).items()}
        bounds = {p: named.get(p, "any") for p in function.parameters.model_fields}
        changed["tools"][function.name] = {**kept, "control": "any", **rule, "bounds": bounds}
    return changed


def camel_strict(policy: Policy, name: str) -> Policy:
    """Returns the same where conditions count, as in the mode `STRICT`: data decide no call that changes something."""
    changed = camel(policy, name)
    for table in changed["tools"].values():
        if table.get("effect", "write") == "write":
            table["control"] = SOURCES["trusted"]
    return changed


def shared(policy: Policy, name: str) -> Policy:
    """Returns the policy of workspace where outsiders can add files and events unseen."""
    changed = copy.deepcopy(policy)
    for tool in ("list_files", "get_day_calendar_events"):
        changed["tools"][tool]["result"] = "untrusted"
    return changed


KINDS: dict[str, Callable[[Policy, str], Policy]] = {
    "own": own,
    "shared": shared,
    "strict": strict,
    "camel": camel,
    "camel-strict": camel_strict,
}
