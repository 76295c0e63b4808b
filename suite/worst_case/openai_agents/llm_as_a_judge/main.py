"""A generator and an evaluator, until the evaluator is content."""
import asyncio
from dataclasses import dataclass
from typing import Literal

from agents import Agent, ItemHelpers, Runner, TResponseInputItem

generator = Agent(name="story_outline_generator", instructions="Write an outline.", model="gpt-4o-mini")


@dataclass
class EvaluationFeedback:
    feedback: str
    score: Literal["pass", "needs_improvement", "fail"]


evaluator = Agent[None](
    name="evaluator", instructions="Evaluate the outline.", output_type=EvaluationFeedback, model="gpt-4o-mini"
)


async def main() -> None:
    input_items: list[TResponseInputItem] = [{"content": "A story", "role": "user"}]
    latest: str | None = None
    while True:
        result = await Runner.run(generator, input_items)
        input_items = result.to_input_list()
        latest = ItemHelpers.text_message_outputs(result.new_items)
        verdict: EvaluationFeedback = (await Runner.run(evaluator, input_items)).final_output
        if verdict.score == "pass":
            break
        input_items.append({"content": f"Feedback: {verdict.feedback}", "role": "user"})
    print(latest)


asyncio.run(main())
