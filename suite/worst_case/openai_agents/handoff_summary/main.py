"""A handoff whose callback lets an agent summarize the conversation."""
import asyncio

from agents import Agent, RunContextWrapper, Runner, handoff
from pydantic import BaseModel


class Escalation(BaseModel):
    reason: str


summarizer = Agent(name="Summarizer", instructions="Summarize the reason for the escalation.", model="gpt-4o-mini")


async def on_escalation(ctx: RunContextWrapper[None], data: Escalation):
    summary = await Runner.run(summarizer, data.reason)
    print("escalated:", summary.final_output)


expert = Agent(name="Expert", instructions="Solve hard cases.", model="gpt-4o-mini")
triage = Agent(
    name="Triage",
    instructions="Escalate hard cases.",
    model="gpt-4o-mini",
    handoffs=[handoff(agent=expert, on_handoff=on_escalation, input_type=Escalation)],
)


async def main():
    print((await Runner.run(triage, "The machine is on fire")).final_output)


asyncio.run(main())
