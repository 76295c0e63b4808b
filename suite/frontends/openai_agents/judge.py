"""A judge sends a draft back until it is content; nothing bounds that. The same with a limit."""
import asyncio
from dataclasses import dataclass
from typing import Literal

from agents import Agent, ItemHelpers, Runner, TResponseInputItem

MOST = 3


@dataclass
class Score:
    feedback: str
    score: Literal["pass", "again"]


drafter = Agent(name="drafter", instructions="Draft.", model="m")
judge = Agent(name="judge", instructions="Judge.", model="m", output_type=Score)


async def endless(topic: str) -> None:
    items: list[TResponseInputItem] = [{"content": topic, "role": "user"}]
    latest: str | None = None
    while True:
        draft = await Runner.run(drafter, items)
        items = draft.to_input_list()
        latest = ItemHelpers.text_message_outputs(draft.new_items)
        verdict = await Runner.run(judge, items)
        score: Score = verdict.final_output
        if score.score == "pass":
            break
        items.append({"content": f"Feedback: {score.feedback}", "role": "user"})
    print(f"Final: {latest}")


async def limited(topic: str) -> str:
    tries = 0
    draft = await Runner.run(drafter, topic)
    while tries < MOST:
        verdict = await Runner.run(judge, draft.final_output)
        if verdict.final_output.score == "pass":
            return draft.final_output
        draft = await Runner.run(drafter, verdict.final_output.feedback)
        tries += 1
    return "none was good"
