"""Release notes with pydantic-ai."""

import asyncio
from itertools import groupby
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent

MODEL = "openai-chat:gpt-5-mini"
TITLES = {"breaking": "Breaking changes", "feature": "New", "fix": "Fixed", "internal": "Internal"}


class Change(BaseModel):
    kind: Literal["breaking", "feature", "fix", "internal"]
    line: str = Field(max_length=200)


class Notes(BaseModel):
    text: str


class Review(BaseModel):
    approved: bool
    feedback: str


reader = Agent(MODEL, output_type=Change, instructions="You read commits of a library.", retries=2)
writer = Agent(
    MODEL,
    output_type=Notes,
    instructions="You write release notes for users, not for developers.",
    retries=2,
)
editor = Agent(
    MODEL,
    output_type=Review,
    instructions="You edit release notes. You approve what is short and clear.",
)


def next_version(version: str, changes: list[Change]) -> str:
    major, minor, patch = (int(part) for part in version.split("."))
    kinds = {change.kind for change in changes}
    if "breaking" in kinds:
        return f"{major + 1}.0.0"
    return f"{major}.{minor + 1}.0" if "feature" in kinds else f"{major}.{minor}.{patch + 1}"


def listed(changes: list[Change]) -> str:
    shown = [change for change in changes if change.kind != "internal"]
    shown.sort(key=lambda change: TITLES[change.kind])
    groups = groupby(shown, key=lambda change: TITLES[change.kind])
    return "\n\n".join(f"{title}:\n" + "\n".join(f"- {c.line}" for c in group) for title, group in groups)


async def sort(commit: str, limit: asyncio.Semaphore) -> Change:
    async with limit:
        return (await reader.run(f"What does this commit change for users?\n\n{commit}")).output


async def notes(version: str, changes: str) -> str:
    text = (await writer.run(f"Notes of {version}:\n\n{changes}")).output.text
    for _ in range(2):
        review = (await editor.run(f"Review these notes:\n\n{text}")).output
        if review.approved:
            break
        prompt = f"Revise the notes of {version}. {review.feedback}\n\n{text}\n\n{changes}"
        text = (await writer.run(prompt)).output.text
    return text


async def run(version: str, commits: list[str]) -> dict:
    limit = asyncio.Semaphore(8)
    changes = await asyncio.gather(*(sort(commit, limit) for commit in commits))
    version = next_version(version, changes)
    return {"version": version, "notes": await notes(version, listed(changes))}


def main(version: str, commits: list[str]) -> dict:
    return asyncio.run(run(version, commits))
