"""Screening of applications: the program around the functions of screening.baml."""

import asyncio

from baml_client.async_client import b
from baml_client.types import Facts

WEIGHTS = {"experience": 0.5, "tools": 0.3, "writing": 0.2}
NEEDED = ["sql", "python"]


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
        facts = await b.Read(letter)
        blind = without_name(letter, facts.name)
        points = [(await b.Judge(criterion, blind)).points for criterion in WEIGHTS]
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
