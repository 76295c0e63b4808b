"""A server of the revision 2025-11-25 whose tool asks where to book before it answers."""

import json
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "server/discover":
        send({"id": number, "error": {"code": -32601, "message": "unknown method"}})
    elif method == "initialize":
        # Without a person nobody says so.
        asks = "elicitation" in message["params"]["capabilities"]
        info = {"name": "booking", "version": "1"}
        send({"id": number, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}}
        send({"id": number, "result": {"tools": [{"name": "book", "description": "", "inputSchema": schema}]}})
    elif method == "tools/call":
        if not asks:
            content = [{"type": "text", "text": "nobody to ask"}]
            send({"id": number, "result": {"content": content, "isError": True}})
            continue
        fields = {"city": {"type": "string", "enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1}}
        schema = {"type": "object", "properties": fields, "required": ["city", "days"]}
        send({"id": 70, "method": "elicitation/create",
              "params": {"message": "Where?\u001b[2J\u202e", "requestedSchema": schema}})
        answer = json.loads(sys.stdin.readline())["result"]
        content = [{"type": "text", "text": json.dumps(answer, sort_keys=True)}]
        send({"id": number, "result": {"content": content}})
