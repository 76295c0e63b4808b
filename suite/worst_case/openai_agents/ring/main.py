"""Two agents that hand over to each other."""
import asyncio

from agents import Agent, ModelSettings, Runner

ONE = ModelSettings(parallel_tool_calls=False)
sales = Agent(name="Sales", instructions="Sell.", model="gpt-4o-mini", model_settings=ONE)
support = Agent(name="Support", instructions="Help.", model="gpt-4o-mini", handoffs=[sales], model_settings=ONE)
sales.handoffs.append(support)
print(asyncio.run(Runner.run(support, "My order", max_turns=6)).final_output)
