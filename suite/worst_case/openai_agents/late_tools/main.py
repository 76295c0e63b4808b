"""Tools and handoffs that are added after an agent is made."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool

ONE = ModelSettings(parallel_tool_calls=False)


@function_tool
def stock(item: str) -> int:
    """Says how many are in stock."""
    return 3


buyer = Agent(name="Buyer", instructions="Buy it.", model="gpt-4o-mini", tools=[stock], model_settings=ONE)
shop = Agent(name="Shop", instructions="Help the customer.", model="gpt-4o-mini", model_settings=ONE)
seller = Agent(name="Seller", instructions="Sell it.", model="gpt-4o-mini", model_settings=ONE)


def wire():
    shop.tools += [buyer.as_tool("buy", "Buys something.", max_turns=2)]
    shop.handoffs = [seller]
    seller.handoffs.append(shop)


wire()
print(asyncio.run(Runner.run(shop, "A pear, please", max_turns=5)).final_output)
