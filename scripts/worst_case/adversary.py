"""Models that make a program ask as often as the protocol allows."""

import json
import re

from server import Refused, Server

# Calls of each tool in a reply, and items of a list, that take a program with no bound beyond every cap.
MANY = 40
LONG = 80
HANDOFF = re.compile("transfer|handoff|hand_off|delegate|coworker", re.IGNORECASE)


class Adversary(Server):
    """Replies by a strategy, counts what is asked, and stops the program at a cap.

    A strategy is an object with these keys:

    - `tools`: `never`, `one` call a reply, `all` offered tools in each reply, `many` (each tool forty times in a reply),
      `handoff` (prefers them), or a number: that many replies with a call in a conversation, then text
    - `data`: `low` or `high` values in structured replies and arguments, `long` (high, with long lists), or `garbage`
    - `say`: the text of other replies, or a list of texts in turn
    - `values`: values of named properties of structured replies and arguments
    - `refuse`: answers a request, then refuses so many with HTTP 500
    """

    def __init__(self, strategy, cap, functions):
        self.strategy, self.cap, self.functions = strategy, cap, functions
        self.answered, self.refused, self.said, self.refusing = 0, 0, 0, 0
        self.results = set()
        self.stop = lambda: None
        super().__init__()

    def reply(self, body):
        if self.answered >= self.cap:
            self.stop()
            raise Refused(400)
        if self.refusing:
            self.refusing -= 1
            self.refused += 1
            raise Refused(500)
        self.refusing = self.strategy.get("refuse", 0)
        self.count_results(body["messages"])
        wanted = body.get("response_format") or {}
        calls = self.calls(body)
        if calls:
            return calls
        if wanted.get("type") in ("json_schema", "json_object") and self.strategy.get("data") != "garbage":
            schema = wanted.get("json_schema", {}).get("schema", {})
            if "json" in self.strategy:
                return json.dumps(self.strategy["json"])
            return json.dumps(self.value(schema, schema.get("$defs", {})))
        say = self.strategy.get("say", "It is not finished, continue.")
        self.said += 1
        return say[(self.said - 1) % len(say)] if isinstance(say, list) else say

    def count_results(self, messages):
        """Counts the results of functions of the program: each is a call that was carried out."""
        names = {}
        for m in messages:
            for call in m.get("tool_calls") or []:
                names[call["id"]] = call["function"]["name"]
            if m["role"] == "tool" and names.get(m.get("tool_call_id")) in self.functions:
                self.results.add(m["tool_call_id"])

    def calls(self, body):
        offered = [t["function"] for t in body.get("tools") or []]
        how = self.strategy.get("tools", "never")
        forced = body.get("tool_choice") not in (None, "auto", "none")
        if isinstance(body.get("tool_choice"), dict):
            name = body["tool_choice"]["function"]["name"]
            offered = [t for t in offered if t["name"] == name]
        if not offered or body.get("tool_choice") == "none":
            return None
        messages = body["messages"]
        last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
        before = sum(bool(m.get("tool_calls")) for m in messages[last:])
        if isinstance(how, int):
            how = "one" if before < how else "never"
        if how == "never" and not forced:
            return None
        call = lambda t: {"tool": t["name"], "args": self.arguments(t)}
        if how in ("all", "many") and body.get("parallel_tool_calls") is not False:
            return [call(t) for t in offered] * (MANY if how == "many" else 1)
        over = [t for t in offered if HANDOFF.search(t["name"])]
        first = over if how == "handoff" else [t for t in offered if t not in over]
        offered = first or offered
        return [call(offered[before % len(offered)])]

    def arguments(self, tool):
        schema = tool.get("parameters") or {}
        if self.strategy.get("data") == "garbage":
            return {}
        value = self.value(schema, schema.get("$defs", {}))
        return value if isinstance(value, dict) else {}

    def value(self, schema, defs, name="", depth=0):
        """Returns a value of a JSON schema."""
        given = self.strategy.get("values", {})
        if name in given:
            return given[name]
        high = self.strategy.get("data") in ("high", "long")
        items = LONG if self.strategy.get("data") == "long" else 5
        if "$ref" in schema:
            schema = defs.get(schema["$ref"].rsplit("/", 1)[-1], {})
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                options = schema[key]
                return self.value(options[-1 if high and key != "anyOf" else 0], defs, name, depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][-1 if high else 0]
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "boolean":
            return high
        if kind in ("integer", "number"):
            return schema.get("maximum", 9) if high else schema.get("minimum", 0)
        if kind == "array":
            most = min(schema.get("maxItems", items), items) if high else schema.get("minItems", 0)
            return [self.value(schema.get("items", {}), defs, "", depth + 1) for _ in range(most)] if depth < 6 else []
        if kind == "object" or "properties" in schema:
            parts = schema.get("properties", {}).items()
            return {n: self.value(s, defs, n, depth + 1) for n, s in parts} if depth < 8 else {}
        if kind == "null":
            return None
        return "It is not finished, continue."
