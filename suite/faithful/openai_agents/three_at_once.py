"""Parallel tool calls: the turn limit counts replies."""
from agents import Agent, Runner, function_tool


@function_tool
def price(item: str) -> str:
    """The price of an item."""
    return {"tea": "3", "jam": "4"}.get(item, "1")


@function_tool
def stock(item: str) -> str:
    """How many there are."""
    return "12"


clerk = Agent(name="Clerk", instructions="Answer about the shop.", model="gpt-4o-mini", tools=[price, stock])

if __name__ == "__main__":
    print(Runner.run_sync(clerk, "Is there tea and jam?", max_turns=3).final_output)
