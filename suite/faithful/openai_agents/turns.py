"""A turn limit that is reached."""
from agents import Agent, MaxTurnsExceeded, Runner, function_tool


@function_tool
def poke(n: int) -> str:
    """Pokes."""
    return "nothing happens"


agent = Agent(name="Child", instructions="Poke.", model="m", tools=[poke])

if __name__ == "__main__":
    try:
        print(Runner.run_sync(agent, "Go on", max_turns=3).final_output)
    except MaxTurnsExceeded:
        print("max turns exceeded")
