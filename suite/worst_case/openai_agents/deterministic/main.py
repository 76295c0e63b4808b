"""An outline, a check, and a story."""
import asyncio

from agents import Agent, Runner, trace
from pydantic import BaseModel

outline = Agent(name="outline", instructions="Write an outline.", model="gpt-4o-mini")


class OutlineCheckerOutput(BaseModel):
    good_quality: bool
    is_scifi: bool


checker = Agent(name="checker", instructions="Judge.", output_type=OutlineCheckerOutput, model="gpt-4o-mini")
story = Agent(name="story", instructions="Write it.", output_type=str, model="gpt-4o-mini")


async def main():
    with trace("Deterministic story flow"):
        first = await Runner.run(outline, "A story")
        check = await Runner.run(checker, first.final_output)
        assert isinstance(check.final_output, OutlineCheckerOutput)
        if not check.final_output.good_quality:
            print("stop")
            exit(0)
        if not check.final_output.is_scifi:
            exit(0)
        result = await Runner.run(story, first.final_output)
        print(result.final_output)


asyncio.run(main())
