"""Release notes: the program around the functions of releases.baml."""

import asyncio
from itertools import groupby

from baml_client.async_client import b
from baml_client.types import Change

TITLES = {"breaking": "Breaking changes", "feature": "New", "fix": "Fixed", "internal": "Internal"}


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
        return await b.Sort(commit)


async def notes(version: str, changes: str) -> str:
    text = (await b.Write(version, changes)).text
    for _ in range(2):
        review = await b.Check(text)
        if review.approved:
            break
        text = (await b.Revise(version, changes, text, review.feedback)).text
    return text


async def run(version: str, commits: list[str]) -> dict:
    limit = asyncio.Semaphore(8)
    changes = await asyncio.gather(*(sort(commit, limit) for commit in commits))
    version = next_version(version, changes)
    return {"version": version, "notes": await notes(version, listed(changes))}


def main(version: str, commits: list[str]) -> dict:
    return asyncio.run(run(version, commits))
