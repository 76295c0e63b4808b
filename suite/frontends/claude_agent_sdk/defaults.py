"""A run without options: the tools of Claude Code, and no bound."""
import anyio
from claude_agent_sdk import query


async def main():
    async for message in query(prompt="Tidy up this folder."):
        print(message)


anyio.run(main)
