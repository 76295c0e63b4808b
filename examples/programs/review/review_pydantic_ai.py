"""Code review with pydantic-ai."""

import asyncio
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent

ASPECTS = ["security", "correctness"]


class Finding(BaseModel):
    line: int
    severity: Literal["low", "high"]
    problem: str


reader = Agent(
    "openai-chat:gpt-5-mini",
    output_type=list[Finding],
    instructions="You review changes of a payment service. Name only what you can point to.",
    retries=2,
)
skeptic = Agent(
    "openai-chat:gpt-5-mini",
    output_type=bool,
    instructions="You doubt findings of code reviews. Confirm only what is certain.",
)


async def ask(diff: str, aspect: str) -> list[Finding]:
    prompt = f"Review this change for {aspect}. `line` is the line in the file.\n\n{diff}"
    return (await reader.run(prompt)).output


async def review(file: dict, limit: asyncio.Semaphore) -> list[tuple[str, Finding]]:
    async with limit:
        found = await asyncio.gather(*(ask(file["diff"], aspect) for aspect in ASPECTS))
        unique = {finding.model_dump_json(): finding for findings in found for finding in findings}
        kept = []
        for finding in unique.values():
            question = f"Is this finding right? Finding: {finding.problem}\n\n{file['diff']}"
            if finding.severity == "low" or (await skeptic.run(question)).output:
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
