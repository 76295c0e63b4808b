"""Translation: the program around the functions of translation.baml."""

import asyncio

from baml_client.async_client import b


def used(glossary: list[dict], text: str) -> list[dict]:
    return [entry for entry in glossary if entry["source"].lower() in text.lower()]


async def part(text: str, language: str, glossary: list[dict], limit: asyncio.Semaphore) -> tuple[str, str]:
    async with limit:
        terms = "; ".join(f"{e['source']} = {e['target']}" for e in used(glossary, text))
        draft = await b.Translate(text, language, terms)
        remark = ""
        for _ in range(3):
            lost = [e["target"] for e in used(glossary, text) if e["target"].lower() not in draft.lower()]
            if lost:
                remark = f"Use these terms: {', '.join(lost)}"
            else:
                review = await b.Compare(text, await b.Back(draft))
                if review.faithful:
                    return draft, ""
                remark = review.remark
            draft = await b.Repair(text, draft, remark)
        return draft, remark


async def run(text: str, language: str, glossary: list[dict]) -> dict:
    paragraphs = [p for p in text.split("\n\n") if p.strip()]
    limit = asyncio.Semaphore(3)
    done = await asyncio.gather(*(part(p, language, glossary, limit) for p in paragraphs))
    return {"text": "\n\n".join(d for d, _ in done), "open": [remark for _, remark in done if remark]}


def main(text: str, language: str, glossary: list[dict]) -> dict:
    return asyncio.run(run(text, language, glossary))
