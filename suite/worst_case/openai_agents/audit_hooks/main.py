"""Hooks of an agent that let a second agent summarize each tool result."""
import asyncio
from typing import Any

from agents import Agent, AgentHooks, RunContextWrapper, Runner, Tool, function_tool

auditor = Agent(name="Auditor", instructions="Summarize the action in one line.", model="gpt-4o-mini")


class AuditTrail(AgentHooks):
    def __init__(self):
        self.lines: list[str] = []

    async def on_tool_end(self, context: RunContextWrapper, agent: Agent, tool: Tool, result: Any) -> None:
        note = await Runner.run(auditor, f"{tool.name} returned {result}")
        self.lines.append(note.final_output)


@function_tool
def book(room: str) -> str:
    """Books a room."""
    return f"{room} is booked"


clerk = Agent(name="Clerk", instructions="Book rooms.", model="gpt-4o-mini", tools=[book], hooks=AuditTrail())

if __name__ == "__main__":
    print(asyncio.run(Runner.run(clerk, "Book the blue room", max_turns=4)).final_output)
