"""Handovers are given after an agent was made without any."""
from agents import Agent, Runner

front = Agent(name="front", instructions="You are at the front.", model="m")
back = Agent(name="back", instructions="You are at the back.", model="m")
side = Agent(name="side", instructions="You are at the side.", model="m")
front.handoffs.append(back)
back.handoffs.extend([front, side])

Runner.run_sync(front, "hi", max_turns=4)
