"""Screening of applications with pydantic-ai."""

import asyncio

from pydantic import BaseModel, Field
from pydantic_ai import Agent

MODEL = "openai-chat:gpt-5-mini"
WEIGHTS = {"experience": 0.5, "tools": 0.3, "writing": 0.2}
NEEDED = ["sql", "python"]


class Facts(BaseModel):
    name: str
    years: float = Field(ge=0, le=60)
    tools: list[str]
    gaps: bool


class Points(BaseModel):
    points: float = Field(ge=0, le=10)
    why: str


reader = Agent(
    MODEL,
    output_type=Facts,
    instructions="You copy facts from applications. You judge nothing.",
    retries=2,
)
judge = Agent(
    MODEL,
    output_type=Points,
    instructions="You give points from 0 to 10. You don't know who applies.",
    retries=2,
)


def without_name(letter: str, name: str) -> str:
    for part in name.split():
        letter = letter.replace(part, "N.")
    return letter


def doubts(facts: Facts, points: list[float]) -> list[str]:
    tools = [tool.lower() for tool in facts.tools]
    found = [f"no {tool}" for tool in NEEDED if tool not in tools]
    if facts.gaps:
        found.append("gaps")
    spread = max(points) - min(points)
    return found + ([f"points differ by {spread:g}"] if spread > 6 else [])


async def score(letter: str, limit: asyncio.Semaphore) -> dict:
    async with limit:
        facts = (await reader.run(f"Facts of this application:\n\n{letter}")).output
        blind = without_name(letter, facts.name)
        points = []
        for criterion in WEIGHTS:
            points.append((await judge.run(f"Points for {criterion}:\n\n{blind}")).output.points)
        total = round(sum(w * p for w, p in zip(WEIGHTS.values(), points)), 2)
        return {"name": facts.name, "total": total, "doubts": doubts(facts, points)}


async def run(letters: list[str]) -> dict:
    limit = asyncio.Semaphore(4)
    scored = await asyncio.gather(*(score(letter, limit) for letter in letters))
    ranked = sorted(scored, key=lambda s: -s["total"])
    return {
        "invited": [s["name"] for s in ranked if not s["doubts"] and s["total"] >= 7],
        "read_by_person": [s for s in ranked if s["doubts"] and s["total"] >= 4],
        "rejected": sum(s["total"] < 4 for s in ranked),
    }


def main(letters: list[str]) -> dict:
    return asyncio.run(run(letters))
