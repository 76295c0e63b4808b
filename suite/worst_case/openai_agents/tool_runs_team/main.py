"""A tool that runs agents in a loop, made by a decorator with arguments."""
import asyncio

from agents import Agent, ModelSettings, Runner, function_tool

critic = Agent(name="Critic", instructions="Criticize.", model="gpt-4o-mini")


@function_tool(name_override="improve_text", failure_error_function=None)
async def improve(text: str) -> str:
    """Improves a text."""
    for _ in range(2):
        text = (await Runner.run(critic, text)).final_output
    return text


editor = Agent(name="Editor", instructions="Edit.", model="gpt-4o-mini", tools=[improve])
editor = editor.clone(model_settings=ModelSettings(parallel_tool_calls=False))
print(asyncio.run(Runner.run(editor, "A text", max_turns=3)).final_output)
