"""Research: the program around the functions of research.baml."""

import asyncio

from baml_client.async_client import b
from world import call


def listed(sources: list[dict]) -> str:
    return "\n\n".join(f"[{s['id']}] {s['title']}\n{s['text']}" for s in sources)


async def look_up(question: str, query: str) -> dict:
    sources = await asyncio.to_thread(call, "search", query=query)
    found = await b.AnswerFrom(question, listed(sources))
    known = [c for c in found.cites if any(s["id"] == c for s in sources)]
    return {"question": question, "answer": found.answer, "cites": known, "open": found.open}


async def research(question: str, limit: asyncio.Semaphore) -> dict:
    async with limit:
        note = await look_up(question, question)
        if note["open"]:
            note = await look_up(question, await b.Refine(question, note["answer"]))
        return note


async def run(topic: str) -> dict:
    questions = (await b.Plan(topic)).questions
    limit = asyncio.Semaphore(4)
    notes = await asyncio.gather(*(research(question, limit) for question in questions))
    known = {cite for note in notes for cite in note["cites"]}
    lines = [f"{n['question']} {n['answer']} [{', '.join(n['cites'])}]" for n in notes]
    report = await b.Write(topic, "\n".join(lines))
    if not set(report.cites) <= known:
        raise ValueError("the report cites what was not found")
    return report.model_dump()


def main(topic: str) -> dict:
    return asyncio.run(run(topic))
