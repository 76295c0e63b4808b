"""A handoff whose callback runs an agent, with a filter."""
import asyncio

from agents import Agent, ModelSettings, RunContextWrapper, Runner, handoff
from agents.extensions import handoff_filters
from pydantic import BaseModel

auditor = Agent(name="Auditor", instructions="Note the reason.", model="gpt-4o-mini")


class EscalationData(BaseModel):
    reason: str


async def on_handoff(ctx: RunContextWrapper[None], input_data: EscalationData):
    await Runner.run(auditor, input_data.reason)


agent = Agent(name="Escalation agent", instructions="Help.", model="gpt-4o-mini")
first = Agent(
    name="First",
    instructions="Escalate.",
    model="gpt-4o-mini",
    handoffs=[
        handoff(
            agent=agent,
            on_handoff=on_handoff,
            input_type=EscalationData,
            input_filter=handoff_filters.remove_all_tools,
        )
    ],
)
agent.handoffs = [first]
print(asyncio.run(Runner.run(first, "Help", max_turns=5)).final_output)
