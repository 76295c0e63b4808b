"""Translation with pydantic-ai."""

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent

MODEL = "openai-chat:gpt-5-mini"


class Review(BaseModel):
    faithful: bool
    remark: str


translator = Agent(MODEL, instructions="You translate manuals of machines. You leave nothing out.")
reader = Agent(
    MODEL,
    output_type=Review,
    instructions="You compare two texts in one language. Only their meaning counts.",
)


def used(glossary: list[dict], text: str) -> list[dict]:
    return [entry for entry in glossary if entry["source"].lower() in text.lower()]


async def part(text: str, language: str, glossary: list[dict], limit: asyncio.Semaphore) -> tuple[str, str]:
    async with limit:
        terms = "; ".join(f"{e['source']} = {e['target']}" for e in used(glossary, text))
        prompt = f"Translate into {language}. Terms: {terms}\n\n{text}"
        draft = (await translator.run(prompt)).output
        remark = ""
        for _ in range(3):
            lost = [e["target"] for e in used(glossary, text) if e["target"].lower() not in draft.lower()]
            if lost:
                remark = f"Use these terms: {', '.join(lost)}"
            else:
                again = (await translator.run(f"Translate into English.\n\n{draft}")).output
                review = (await reader.run(f"Do these say the same?\n\n{text}\n\n{again}")).output
                if review.faithful:
                    return draft, ""
                remark = review.remark
            prompt = f"Repair this translation. {remark}\n\nOriginal: {text}\n\nTranslation: {draft}"
            draft = (await translator.run(prompt)).output
        return draft, remark


async def run(text: str, language: str, glossary: list[dict]) -> dict:
    paragraphs = [p for p in text.split("\n\n") if p.strip()]
    limit = asyncio.Semaphore(3)
    done = await asyncio.gather(*(part(p, language, glossary, limit) for p in paragraphs))
    return {"text": "\n\n".join(d for d, _ in done), "open": [remark for _, remark in done if remark]}


def main(text: str, language: str, glossary: list[dict]) -> dict:
    return asyncio.run(run(text, language, glossary))
