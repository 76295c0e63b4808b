from agents import Agent, Runner, function_tool


@function_tool
def look_up(order: int) -> str:
    return "shipped"


@function_tool
def refund(order: int) -> str:
    return "refunded"


desk = Agent(
    name="desk",
    model="gpt-4.1-mini",
    instructions="You answer questions about orders. Refund an order only if it was lost.",
    tools=[look_up, refund],
)

Runner.run_sync(desk, "Where is order 17?", max_turns=6)
