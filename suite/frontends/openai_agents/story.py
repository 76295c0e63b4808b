"""One agent after the other: what the second says decides whether the third is asked."""
import asyncio

from agents import Agent, Runner, trace
from pydantic import BaseModel


class Verdict(BaseModel):
    good: bool
    genre: str


outliner = Agent(name="outliner", instructions="Outline a story.", model="m")
checker = Agent(name="checker", instructions="Judge the outline.", model="m", output_type=Verdict)
writer = Agent(name="writer", instructions="Write the story.", model="m")


async def main():
    wish = input("What is the story about? ")
    with trace("a story"):
        outline = await Runner.run(outliner, wish)
        print("outlined")
        check = await Runner.run(checker, outline.final_output, max_turns=2)
        assert isinstance(check.final_output, Verdict)
        if not check.final_output.good:
            print("no good")
            return
        if check.final_output.genre != "crime":
            print("no crime")
            exit(0)
        story = await Runner.run(writer, f"Write this:\n{outline.final_output}")
    print(f"Story: {story.final_output}")


if __name__ == "__main__":
    asyncio.run(main())
