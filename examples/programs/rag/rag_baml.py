"""Questions about a handbook: the program around the functions of rag.baml."""

import asyncio

from baml_client.async_client import b
from baml_client.types import Quote
from world import call


def tidy(text: str) -> str:
    return " ".join(line.strip() for line in text.split("\n")).lower()


def is_literal(quote: Quote, passages: list[dict]) -> bool:
    return any(p["id"] == quote.id and tidy(quote.words) in tidy(p["text"]) for p in passages)


async def score(question: str, passage: dict, limit: asyncio.Semaphore) -> float:
    async with limit:
        try:
            return (await b.Judge(question, passage["text"])).points
        except Exception:
            return 0


async def run(question: str, history: list[str]) -> dict:
    if history:
        question = await b.Rewrite(question, history)
    passages = call("retrieve", question=question, most=8)
    limit = asyncio.Semaphore(4)
    points = await asyncio.gather(*(score(question, passage, limit) for passage in passages))
    ranked = sorted(zip(points, passages), key=lambda pair: -pair[0])
    good = [passage for points, passage in ranked if points >= 5]
    if not good:
        return {"Unknown": {"closest": [p["id"] for p in passages]}}
    best = good[:3]
    listed = "\n\n".join(f"[{p['id']}] {p['text']}" for p in best)
    reply = await b.AnswerFrom(question, listed)
    quotes = [quote.model_dump() for quote in reply.quotes if is_literal(quote, best)]
    if not quotes:
        return {"Unknown": {"closest": [p["id"] for p in best]}}
    return {"Known": {"text": reply.text, "quotes": quotes}}


def main(question: str, history: list[str] = []) -> dict:
    return asyncio.run(run(question, history))
