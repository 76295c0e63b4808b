"""One agent without tools."""
from agents import Agent, Runner

agent = Agent(name="Poet", instructions="Answer in one line.", model="m")

if __name__ == "__main__":
    print(Runner.run_sync(agent, "Write about bees").final_output)
