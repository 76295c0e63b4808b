"""Two agents that hand over to each other."""
from agents import Agent, Runner

a = Agent(name="a", instructions="You are a.", model="m")
b = Agent(name="b", instructions="You are b.", model="m", handoffs=[a])
a.handoffs = [b]

Runner.run_sync(a, "hi")
