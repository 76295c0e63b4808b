"""A bank as an MCP server over standard input and output, without packages. `offers.json` beside it may change what it offers."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
TOOLS = {
    "list-bills": {
        "description": "All bills.\n\nThe newest first.",
        "inputSchema": {
            "type": "object",
            "properties": {"kind": {"enum": ["rent", "power"]}, "most": {"type": "integer", "default": 2}},
            "required": ["kind"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Bill"}}},
            "required": ["result"],
            "$defs": {
                "Bill": {
                    "type": "object",
                    "properties": {"iban": {"type": "string"}, "total": {"type": "number"}},
                    "required": ["iban", "total"],
                }
            },
        },
    },
    "pay": {
        "description": "Pays.",
        "inputSchema": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "amount": {"type": "number"}},
            "required": ["to", "amount"],
        },
    },
}
BILLS = [{"iban": "DE12", "total": 700.5}, {"iban": "DE34", "total": 20}, {"iban": "DE56", "total": 3}]


def offered():
    changes = HERE / "offers.json"
    more = json.loads(changes.read_text()) if changes.exists() else {}
    names = [*TOOLS, *(n for n in more if n not in TOOLS)]
    return [{"name": n, **TOOLS.get(n, {"inputSchema": {"type": "object"}}), **more.get(n, {})} for n in names]


def called(name, args):
    with open(HERE / "called", "a") as log:
        log.write(json.dumps([name, args]) + "\n")
    if name == "list-bills":
        bills = BILLS[: args.get("most", 2)]
        return {"content": [{"type": "text", "text": json.dumps(bills)}], "structuredContent": {"result": bills}}
    return {"content": [{"type": "text", "text": f"paid {args['amount']} to {args['to']}"}]}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bank", "version": "1"},
        }
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": offered()}
    elif asked["method"] == "tools/call":
        answer["result"] = called(asked["params"]["name"], asked["params"].get("arguments", {}))
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
