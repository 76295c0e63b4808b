"""The airline example: handoffs to and fro, for a few inputs."""
import asyncio

from agents import Agent, HandoffOutputItem, ItemHelpers, Runner, RunContextWrapper, function_tool, handoff
from pydantic import BaseModel


class AirlineAgentContext(BaseModel):
    passenger_name: str | None = None
    flight_number: str | None = None


@function_tool
async def faq_lookup_tool(question: str) -> str:
    """Lookup frequently asked questions."""
    return "I'm sorry, I don't know."


@function_tool
async def update_seat(context: RunContextWrapper[AirlineAgentContext], number: str, new_seat: str) -> str:
    """Update the seat."""
    return "Updated"


async def on_seat_booking_handoff(context: RunContextWrapper[AirlineAgentContext]) -> None:
    context.context.flight_number = "FLT-1"


faq_agent = Agent[AirlineAgentContext](
    name="FAQ Agent", instructions="Answer.", tools=[faq_lookup_tool], model="gpt-4o-mini"
)
seat_agent = Agent[AirlineAgentContext](
    name="Seat Booking Agent", instructions="Book.", tools=[update_seat], model="gpt-4o-mini"
)
triage_agent = Agent[AirlineAgentContext](
    name="Triage Agent",
    instructions="Route.",
    model="gpt-4o-mini",
    handoffs=[faq_agent, handoff(agent=seat_agent, on_handoff=on_seat_booking_handoff)],
)
faq_agent.handoffs.append(triage_agent)
seat_agent.handoffs.append(triage_agent)


async def main():
    current_agent: Agent[AirlineAgentContext] = triage_agent
    input_items = []
    context = AirlineAgentContext()
    for user_input in ["A seat", "A bag"]:
        input_items.append({"content": user_input, "role": "user"})
        result = await Runner.run(current_agent, input_items, context=context, max_turns=6)
        for new_item in result.new_items:
            if isinstance(new_item, HandoffOutputItem):
                print("handed over")
        input_items = result.to_input_list()
        current_agent = result.last_agent


asyncio.run(main())
