"""Code review: the program around the functions of review.baml."""

import asyncio

from baml_client.async_client import b
from baml_client.types import Finding

ASPECTS = ["security", "correctness"]


async def review(file: dict, limit: asyncio.Semaphore) -> list[tuple[str, Finding]]:
    async with limit:
        found = await asyncio.gather(*(b.Review(file["diff"], aspect) for aspect in ASPECTS))
        unique = {finding.model_dump_json(): finding for findings in found for finding in findings}
        kept = []
        for finding in unique.values():
            if finding.severity == "low" or await b.Confirm(file["diff"], finding.problem):
                kept.append((file["name"], finding))
        return kept


def decide(found: list[tuple[str, Finding]]) -> dict | str:
    high = [(name, finding) for name, finding in found if finding.severity == "high"]
    lines = [f"{name}:{finding.line} {finding.problem}" for name, finding in high or found]
    if high:
        return {"Block": {"lines": lines}}
    return {"Comment": {"lines": lines}} if found else "Approve"


async def run(files: list[dict]) -> dict | str:
    limit = asyncio.Semaphore(4)
    found = await asyncio.gather(*(review(file, limit) for file in files))
    return decide([item for items in found for item in items])


def main(files: list[dict]) -> dict | str:
    return asyncio.run(run(files))
