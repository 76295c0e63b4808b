"""A tool that needs an approval, which an agent gives."""
import asyncio

from agents import Agent, Runner, function_tool

officer = Agent(name="Officer", instructions="May it be done?", model="gpt-4o-mini")


async def needs(context, arguments, call_id) -> bool:
    answer = await Runner.run(officer, str(arguments))
    return answer.final_output == "ask a person"


@function_tool(needs_approval=needs)
def pay(amount: int) -> str:
    """Pays."""
    return "paid"


agent = Agent(name="Cashier", instructions="Pay.", model="gpt-4o-mini", tools=[pay])
print(asyncio.run(Runner.run(agent, "Pay 5", max_turns=3)).final_output)
