"""Questions about a handbook with pydantic-ai."""

import asyncio
from typing import Annotated

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import call

MODEL = "openai-chat:gpt-5-mini"


class Quote(BaseModel):
    id: str
    words: str


class Reply(BaseModel):
    text: str
    quotes: list[Quote]


judge = Agent(
    MODEL,
    output_type=Annotated[float, Field(ge=0, le=10)],
    instructions="You judge how well a passage answers a question, from 0 to 10.",
    retries=2,
)
expert = Agent(
    MODEL,
    output_type=Reply,
    instructions="You answer with what the passages say. Quote them word by word.",
    retries=2,
)
rewriter = Agent(MODEL)


def tidy(text: str) -> str:
    return " ".join(line.strip() for line in text.split("\n")).lower()


def is_literal(quote: Quote, passages: list[dict]) -> bool:
    return any(p["id"] == quote.id and tidy(quote.words) in tidy(p["text"]) for p in passages)


async def score(question: str, passage: dict, limit: asyncio.Semaphore) -> float:
    async with limit:
        try:
            return (await judge.run(f"Question: {question}\n\nPassage: {passage['text']}")).output
        except Exception:
            return 0


async def run(question: str, history: list[str]) -> dict:
    if history:
        prompt = "Make one question that can be understood alone."
        question = (await rewriter.run(f"{prompt} Before: {history}. Now: {question}")).output
    passages = call("retrieve", question=question, most=8)
    limit = asyncio.Semaphore(4)
    points = await asyncio.gather(*(score(question, passage, limit) for passage in passages))
    ranked = sorted(zip(points, passages), key=lambda pair: -pair[0])
    good = [passage for points, passage in ranked if points >= 5]
    if not good:
        return {"Unknown": {"closest": [p["id"] for p in passages]}}
    best = good[:3]
    listed = "\n\n".join(f"[{p['id']}] {p['text']}" for p in best)
    reply = (await expert.run(f"{question}\n\n{listed}")).output
    quotes = [quote.model_dump() for quote in reply.quotes if is_literal(quote, best)]
    if not quotes:
        return {"Unknown": {"closest": [p["id"] for p in best]}}
    return {"Known": {"text": reply.text, "quotes": quotes}}


def main(question: str, history: list[str] = []) -> dict:
    return asyncio.run(run(question, history))
