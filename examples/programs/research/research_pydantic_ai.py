"""Research with pydantic-ai."""

import asyncio
from typing import Annotated

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import call

MODEL = "openai-chat:gpt-5-mini"


class Found(BaseModel):
    answer: str
    cites: list[str]
    open: bool


class Report(BaseModel):
    text: str
    cites: list[str]


class Questions(BaseModel):
    questions: Annotated[list[str], Field(min_length=1, max_length=4)]


PLANS = "You plan research. Ask what can be looked up."
planner = Agent(MODEL, output_type=Questions, instructions=PLANS, retries=2)
refiner = Agent(MODEL, instructions=PLANS)
analyst = Agent(
    MODEL,
    output_type=Found,
    instructions="You answer from the sources you are given, and from nothing else.",
    retries=2,
)
editor = Agent(
    MODEL,
    output_type=Report,
    instructions="You write short reports. Each claim has its source in brackets.",
)


def listed(sources: list[dict]) -> str:
    return "\n\n".join(f"[{s['id']}] {s['title']}\n{s['text']}" for s in sources)


async def look_up(question: str, query: str) -> dict:
    sources = await asyncio.to_thread(call, "search", query=query)
    task = "Answer from the sources. `cites` are their ids. `open` if they don't say."
    found = (await analyst.run(f"{task} {question}\n\n{listed(sources)}")).output
    known = [c for c in found.cites if any(s["id"] == c for s in sources)]
    return {"question": question, "answer": found.answer, "cites": known, "open": found.open}


async def research(question: str, limit: asyncio.Semaphore) -> dict:
    async with limit:
        note = await look_up(question, question)
        if note["open"]:
            task = "These sources did not answer it. Give another query."
            query = await refiner.run(f"{task} {question}\n\nSo far: {note['answer']}")
            note = await look_up(question, query.output)
        return note


async def run(topic: str) -> dict:
    plan = await planner.run(f"Which questions must be answered about this topic? {topic}")
    limit = asyncio.Semaphore(4)
    notes = await asyncio.gather(*(research(question, limit) for question in plan.output.questions))
    known = {cite for note in notes for cite in note["cites"]}
    lines = [f"{n['question']} {n['answer']} [{', '.join(n['cites'])}]" for n in notes]
    report = (await editor.run(f"Report on {topic}:\n\n" + "\n".join(lines))).output
    if not set(report.cites) <= known:
        raise ValueError("the report cites what was not found")
    return report.model_dump()


def main(topic: str) -> dict:
    return asyncio.run(run(topic))
