"""A writer and a judge, at most four rounds."""
import asyncio
from dataclasses import dataclass
from typing import Literal

from agents import Agent, Runner, TResponseInputItem


@dataclass
class Feedback:
    score: Literal["pass", "needs_improvement"]
    text: str


writer = Agent(name="Writer", instructions="Write an outline.", model="gpt-4o-mini")
judge = Agent[None](name="Judge", instructions="Judge the outline.", model="gpt-4o-mini", output_type=Feedback)
ROUNDS = 4


async def main():
    items: list[TResponseInputItem] = [{"role": "user", "content": "A story about a fox"}]
    rounds = 0
    while rounds < ROUNDS:
        outline = await Runner.run(writer, items)
        items = outline.to_input_list()
        feedback = (await Runner.run(judge, items)).final_output
        if feedback.score == "pass":
            break
        items.append({"role": "user", "content": f"Feedback: {feedback.text}"})
        rounds += 1
    print("done")


asyncio.run(main())
