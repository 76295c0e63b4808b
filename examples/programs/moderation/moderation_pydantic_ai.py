"""Moderation with pydantic-ai."""

import asyncio
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import call

MODEL = "openai-chat:gpt-5-mini"
Rule = Literal["none", "insult", "spam", "private data"]


class Judgment(BaseModel):
    rule: Rule
    sure: float = Field(ge=0, le=1)


def moderator(instructions: str) -> Agent[None, Judgment]:
    return Agent(MODEL, output_type=Judgment, instructions=instructions, retries=2)


strict = moderator("You moderate a forum of gardeners. You are strict.")
lenient = moderator("You moderate a forum of gardeners. You let people speak.")
senior = moderator("You decide where two moderators disagree.")


async def moderate(text: str) -> dict | str:
    question = f"Which rule does this post break?\n\n{text}"
    replies = await asyncio.gather(strict.run(question), lenient.run(question))
    a, b = (reply.output for reply in replies)
    last = a
    if a.rule != b.rule:
        last = (await senior.run(f"One says {a.rule}, one says {b.rule}. {question}")).output
        if last.sure < 0.7:
            return {"Ask": {"first": a.rule, "second": b.rule}}
    return "Show" if last.rule == "none" else {"Hide": {"rule": last.rule}}


async def run(posts: list[dict]) -> list[dict]:
    out = []
    for post in posts:
        decision = await moderate(post["text"])
        if isinstance(decision, dict) and "Hide" in decision:
            call("hide", id=post["id"], rule=decision["Hide"]["rule"])
        out.append({"id": post["id"], "decision": decision})
    return out


def main(posts: list[dict]) -> list[dict]:
    return asyncio.run(run(posts))
