"""Data cleaning with pydantic-ai."""

import asyncio
from decimal import Decimal
from typing import Literal

from pydantic_ai import Agent

Country = Literal["DE", "FR", "GB", "US", "unknown"]
SPELLINGS: dict[str, Country] = {
    "germany": "DE",
    "deutschland": "DE",
    "france": "FR",
    "uk": "GB",
    "usa": "US",
}

clerk = Agent(
    "openai-chat:gpt-5-mini",
    output_type=Country,
    instructions="You know how people misspell countries.",
    retries=2,
)


def tidy(text: str) -> str:
    return " ".join(text.split())


def amount(text: str) -> float:
    plain = text.replace("€", "").strip()
    if "," in plain:
        plain = plain.replace(".", "").replace(",", ".")
    return float(round(Decimal(plain or "0"), 2))


async def name_country(text: str, limit: asyncio.Semaphore) -> Country:
    async with limit:
        try:
            return (await clerk.run(f'Which country is meant by "{text}"?')).output
        except Exception:
            return "unknown"


async def run(rows: list[dict]) -> dict:
    good = [row for row in rows if "@" in row["mail"]]
    strange = list({tidy(row["country"]).lower(): None for row in good})
    strange = [text for text in strange if text not in SPELLINGS]
    limit = asyncio.Semaphore(4)
    named = await asyncio.gather(*(name_country(text, limit) for text in strange))
    known = {**SPELLINGS, **dict(zip(strange, named))}
    merged: dict[str, dict] = {}
    for row in good:
        mail = tidy(row["mail"]).lower()
        country = known.get(tidy(row["country"]).lower(), "unknown")
        contact = {"name": tidy(row["name"]).title(), "mail": mail, "country": country}
        first = merged.setdefault(mail, {**contact, "spent": 0})
        first["spent"] = max(first["spent"], amount(row["spent"]))
    return {
        "contacts": sorted(merged.values(), key=lambda contact: contact["name"]),
        "rejected": [row["name"] for row in rows if "@" not in row["mail"]],
        "merged": len(good) - len(merged),
    }


def main(rows: list[dict]) -> dict:
    return asyncio.run(run(rows))
