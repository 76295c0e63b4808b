"""A help desk: a triage agent hands over, a specialist uses tools and asks another agent."""
import asyncio
import os
from typing import Literal

from agents import Agent, ModelSettings, RunContextWrapper, Runner, WebSearchTool, function_tool, handoff
from pydantic import BaseModel

MODEL = os.getenv("DESK_MODEL", "gpt-4.1-mini")
TONE = "Be brief."


class Answer(BaseModel):
    text: str
    mood: Literal["calm", "angry"]
    links: list[str]


@function_tool
def find_order(ctx: RunContextWrapper, number: int, verbose: bool = False) -> str:
    """Finds an order.

    Args:
        number: which one
    """
    return "found"


@function_tool(name_override="send_refund", description_override="Pays back.")
async def refund(number: int, cents: float | None) -> str:
    return "done"


writer = Agent(name="Writer", instructions=f"Write politely. {TONE}", model=MODEL)

billing = Agent(
    name="Billing Expert",
    handoff_description="Knows about money.",
    instructions="Settle questions of money.\n" + TONE,
    model=MODEL,
    model_settings=ModelSettings(temperature=0.2, max_tokens=400, parallel_tool_calls=False),
    tools=[find_order, refund, WebSearchTool(), writer.as_tool(tool_name="polish", tool_description="Polishes a text.")],
    output_type=Answer,
)
triage = Agent[None](name="Triage", instructions="Send people to whom they need.", handoffs=[handoff(billing)])
billing.handoffs.append(triage) if False else None


async def main():
    result = await Runner.run(triage, input="I was charged twice", max_turns=8)
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
