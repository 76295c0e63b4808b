"""Two runs of one agent that have nothing to do with each other."""
from agents import Agent, Runner

agent = Agent(name="Guide", instructions="Recommend one restaurant.", model="gpt-4o-mini")

print(Runner.run_sync(agent, "Bonn").final_output)
print(Runner.run_sync(agent, "Rome").final_output)
