"""Moderation: the program around the functions of moderation.baml."""

import asyncio

from baml_client.async_client import b
from world import call


async def moderate(text: str) -> dict | str:
    strict, lenient = b.Judge(text, "You are strict."), b.Judge(text, "You let people speak.")
    first, second = await asyncio.gather(strict, lenient)
    last = first
    if first.rule != second.rule:
        last = await b.Decide(text, first.rule, second.rule)
        if last.sure < 0.7:
            return {"Ask": {"first": first.rule, "second": second.rule}}
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
