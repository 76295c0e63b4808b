"""Clients of the official Python SDK over HTTP, each in a session of one `entail guard --http`.

over_http.py ENTAIL: the command. Run by scripts/guard-clients with the Python that has the SDK.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2
import mcp.types as types
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

TOKEN = "token-4711"
POLICY = """
[tools.fetch]
effect = "read"
[tools.send]
effect = "write"
result = "trusted"
[tools.pay]
effect = "write"
result = "trusted"
approve = true
"""
SERVER = """
import json, sys
def tool(name, *params):
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in params}, "required": list(params)}
    return {"name": name, "description": name, "inputSchema": schema}
for line in sys.stdin:
    request, result = json.loads(line), {}
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "desk", "version": "1"}}
    elif request["method"] == "tools/list":
        result = {"tools": [tool("fetch", "url"), tool("send", "to", "body"), tool("pay", "to")]}
    elif request["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "did " + request["params"]["name"]}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class Client:
    """A client that approves what it is asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def approve(self, _context, params):
        self.asked.append(params.message.splitlines()[0])
        return types.ElicitResult(action="accept", content={"approve": True})

    async def call(self, session: ClientSession, name: str, **arguments: str) -> str:
        result = await session.call_tool(f"desk__{name}", arguments)
        return result.content[0].text

    async def run(self, url: str, reads: bool) -> list[str]:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
        async with streamable_http_client(url, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1], elicitation_callback=self.approve) as session:
                await session.initialize()
                names = [tool.name for tool in (await session.list_tools()).tools]
                assert names == ["desk__fetch", "desk__send", "desk__pay"], names
                said = [await self.call(session, "fetch", url="u")] if reads else []
                said.append(await self.call(session, "send", to="bob", body="x"))
                said.append(await self.call(session, "pay", to="bob"))
                return said


async def main(entail: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "server.py").write_text(SERVER)
        Path(folder, "policy.toml").write_text(POLICY)
        Path(folder, "list.json").write_text(json.dumps({"mcpServers": {"desk": {"command": sys.executable, "args": ["server.py"]}}}))
        subprocess.run([entail, "guard", "--approve", "--mcp-config", "list.json"], cwd=folder, check=True, capture_output=True)
        guard = subprocess.Popen(
            [entail, "guard", "--policy", "policy.toml", "--mcp-config", "list.json", "--http", "127.0.0.1:0"],
            cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ | {"ENTAIL_GUARD_TOKEN": TOKEN},
        )
        try:
            url = next(line for line in guard.stderr if "http://" in line).split()[2]
            reader, writer = Client(), Client()
            read, wrote = await asyncio.gather(reader.run(url, True), writer.run(url, False))
        finally:
            guard.terminate()
            guard.wait(timeout=30)
    assert read[0] == "did fetch" and "since calls of `desk__fetch`" in read[1], read
    assert wrote == ["did send", "did pay"], wrote
    # A person vouches for a call, also after a page was read.
    assert read[2] == "did pay" and len(reader.asked) == len(writer.asked) == 1, (read, reader.asked)
    print("2 clients of the Python SDK over HTTP: each in a session of its own")


asyncio.run(asyncio.wait_for(main(sys.argv[1]), 120))
