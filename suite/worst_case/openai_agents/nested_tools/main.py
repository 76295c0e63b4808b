"""Agents as tools, two levels deep, each with a limit."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool

ONE = ModelSettings(parallel_tool_calls=False)


@function_tool
def lookup(word: str) -> str:
    """Looks a word up."""
    return f"{word}: a word"


linguist = Agent(name="Linguist", instructions="Explain words.", model="gpt-4o-mini", tools=[lookup], model_settings=ONE)
editor = Agent(
    name="Editor",
    instructions="Edit the text.",
    model="gpt-4o-mini",
    model_settings=ONE,
    tools=[linguist.as_tool(tool_name="ask_linguist", tool_description="Asks a linguist.", max_turns=3)],
)
chief = Agent(
    name="Chief",
    instructions="Publish the text.",
    model="gpt-4o-mini",
    model_settings=ONE,
    tools=[editor.as_tool(tool_name="ask_editor", tool_description="Asks an editor.", max_turns=3)],
)

if __name__ == "__main__":
    print(asyncio.run(Runner.run(chief, "Publish: hello", max_turns=3)).final_output)
