"""A calculator in the process, and nothing else that the model could call."""
import asyncio

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool


@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(args):
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


@tool("root", "Square root of a number.", {"type": "object", "properties": {"x": {"type": "number"}}})
async def root(args):
    return {"content": [{"type": "text", "text": str(args["x"] ** 0.5)}]}


calculator = create_sdk_mcp_server(name="calculator", version="1.0.0", tools=[add, root])
options = ClaudeAgentOptions(
    system_prompt="Compute with the tools.",
    model="claude-sonnet-4-5",
    max_turns=4,
    tools=[],
    mcp_servers={"calc": calculator},
    allowed_tools=["mcp__calc__add"],
)


async def main():
    async for message in query(prompt="What is the root of 2 + 7?", options=options):
        print(message)


asyncio.run(main())
