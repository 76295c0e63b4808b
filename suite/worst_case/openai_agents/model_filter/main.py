"""A filter of what the model is asked, which lets another agent shorten it."""
import asyncio

from agents import Agent, RunConfig, Runner, function_tool
from agents.run import CallModelData, ModelInputData

shortener = Agent(name="Shortener", instructions="Shorten.", model="gpt-4o-mini")


@function_tool
def read(page: int) -> str:
    """Reads a page."""
    return "a page"


async def shorten(data: CallModelData) -> ModelInputData:
    await Runner.run(shortener, "a long text")
    return data.model_data


reader = Agent(name="Reader", instructions="Read.", model="gpt-4o-mini", tools=[read])
config = RunConfig(call_model_input_filter=shorten)
print(asyncio.run(Runner.run(reader, "Read the book", run_config=config, max_turns=3)).final_output)
