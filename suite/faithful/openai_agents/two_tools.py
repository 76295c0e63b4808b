"""Several tools in sequence with typed arguments."""
from agents import Agent, Runner, function_tool


@function_tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@function_tool(name_override="join_words", description_override="Joins words.")
def join(words: list[str], upper: bool) -> str:
    text = " ".join(words)
    return text.upper() if upper else text


agent = Agent(name="Clerk", instructions="Use the tools.", model="m", tools=[add, join])

if __name__ == "__main__":
    print(Runner.run_sync(agent, "What is 2 + 3, in capitals?").final_output)
