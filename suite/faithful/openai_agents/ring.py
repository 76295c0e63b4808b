"""Two agents that hand off to each other."""
from agents import Agent, Runner

first = Agent(name="first one", instructions="You are the first.", model="m")
second = Agent(name="second one", instructions="You are the second.", model="m", handoffs=[first])
first.handoffs.append(second)

if __name__ == "__main__":
    print(Runner.run_sync(first, "Go").final_output)
