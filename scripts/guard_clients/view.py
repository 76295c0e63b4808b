"""What a client made with the official Python SDK sees of a server, as JSON.

python view.py SCENARIO.json COMMAND ARGUMENT…
"""

import asyncio
import json
import os
import sys
from typing import Any, Awaitable, Callable

import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def plain(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(value, "model_dump") else value


async def main() -> None:
    scenario_file, command, *args = sys.argv[1:]
    with open(scenario_file, encoding="utf-8") as file:
        scenario = json.load(file)
    view: dict[str, Any] = {}
    asked: list[Any] = []
    told: list[str] = []

    async def sampling(_: Any, params: Any) -> Any:
        asked.append(["sampling", plain(params)])
        text = types.TextContent(type="text", text="an answer")
        return types.CreateMessageResult(role="assistant", content=text, model="none", stopReason="endTurn")

    async def elicitation(_: Any, params: Any) -> Any:
        asked.append(["elicitation", plain(params)])
        return types.ElicitResult(action="accept", content={"name": "Ann", "firstLine": "A line", "interpretation": "x"})

    async def roots(_: Any) -> Any:
        asked.append(["roots", {}])
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp", name="tmp")])

    async def message(said: Any) -> None:
        if not isinstance(said, Exception) and not hasattr(said, "request_id"):
            told.append(json.dumps(plain(said), sort_keys=True))

    async def see(what: str, ask: Callable[[], Awaitable[Any]]) -> None:
        try:
            view[what] = plain(await ask())
        except Exception as error:  # the client's own errors differ by version; their text and code are what counts
            code = getattr(getattr(error, "error", None), "code", None)
            view[what] = {"error": {"code": code, "message": str(error)}}

    server = StdioServerParameters(command=command, args=args, cwd=scenario.get("cwd"), env=dict(os.environ))
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        async with stdio_client(server, errlog=nowhere) as (read, write):
            async with ClientSession(
                read,
                write,
                sampling_callback=sampling,
                elicitation_callback=elicitation,
                list_roots_callback=roots,
                message_handler=message,
            ) as session:
                start = plain(await session.initialize())
                view["start"] = start
                has = start["capabilities"]
                await see("ping", session.send_ping)
                await see("tools", session.list_tools)
                if "resources" in has:
                    await see("resources", session.list_resources)
                    await see("templates", session.list_resource_templates)
                if "prompts" in has:
                    await see("prompts", session.list_prompts)
                for name, given in scenario["calls"]:
                    progress: list[Any] = []

                    async def on_progress(at: float, total: float | None, text: str | None) -> None:
                        progress.append([at, total, text])

                    async def call() -> Any:
                        result = await session.call_tool(name, given, progress_callback=on_progress)
                        return {"result": plain(result), "progress": progress[: scenario.get("progress", 0)]}

                    await see(f"call {name} {json.dumps(given)}", call)
                for uri in scenario.get("resources", []):
                    await see(f"read {uri}", lambda: session.read_resource(uri))
                for name, given in scenario.get("prompts", []):
                    await see(f"prompt {name} {json.dumps(given)}", lambda: session.get_prompt(name, given))
                if "logging" in has:
                    await see("level", lambda: session.set_logging_level("debug"))
                if slow := scenario.get("slow"):
                    try:
                        await asyncio.wait_for(session.call_tool(*slow), 0.7)
                        view["cancel"] = "not canceled"
                    except (TimeoutError, asyncio.TimeoutError):
                        view["cancel"] = "canceled"
                    await see("after the cancellation", session.send_ping)
                await asyncio.sleep(1)
    view["asked"] = asked
    view["told"] = sorted(told)
    print(json.dumps(view))


asyncio.run(main())
