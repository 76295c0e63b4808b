"""A run that stops for an approval and goes on."""
import asyncio

from agents import Agent, Runner, function_tool


@function_tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return "paid"


agent = Agent(name="Cashier", instructions="Pay.", model="gpt-4o-mini", tools=[pay])


async def main():
    result = await Runner.run(agent, "Pay 5", max_turns=4)
    while result.interruptions:
        state = result.to_state()
        for item in result.interruptions:
            state.approve(item)
        result = await Runner.run(agent, state, max_turns=4)
    print(result.final_output)


asyncio.run(main())
