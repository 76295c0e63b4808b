"""The framework under other names."""
import asyncio
import agents as sdk
from agents import Agent as Bot, Runner as Go, function_tool as tool


@tool
def ping() -> str:
    """Pings."""
    return "pong"


inner = Bot(name="Inner", instructions="Ping once.", model="gpt-4o-mini", tools=[ping])
outer = sdk.Agent(
    name="Outer",
    instructions="Ask Inner.",
    model="gpt-4o-mini",
    tools=[inner.as_tool("inner", "Pings.", max_turns=2)],
    model_settings=sdk.ModelSettings(parallel_tool_calls=False),
)
print(asyncio.run(Go.run(outer, "Ping!", max_turns=3)).final_output)
