"""A handoff to an agent with a tool."""
from agents import Agent, Runner, function_tool


@function_tool
def refund(order: int) -> str:
    """Pays an order back."""
    return f"order {order} is paid back"


billing = Agent(name="Billing", instructions="Settle it.", handoff_description="Knows about money.", model="m", tools=[refund])
support = Agent(name="Support", instructions="Help with machines.", model="m")
triage = Agent(name="Triage", instructions="Send people on.", model="m", handoffs=[billing, support])

if __name__ == "__main__":
    print(Runner.run_sync(triage, "I paid twice for order 7").final_output)
