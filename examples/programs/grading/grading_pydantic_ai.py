"""Grading with pydantic-ai."""

import asyncio
from statistics import median

from pydantic import BaseModel, Field
from pydantic_ai import Agent

MODEL = "openai-chat:gpt-5-mini"
RUBRIC = [
    {"name": "thesis", "asks": "Is there one claim, and is it clear?", "most": 10},
    {"name": "evidence", "asks": "Is each claim supported by the sources?", "most": 20},
]


class Points(BaseModel):
    points: float = Field(ge=0)
    reason: str


LOOKS_AT = ["language", "arguments", "sources"]
judges = [
    Agent(MODEL, output_type=Points, instructions=f"You grade essays. You look at {what}.", retries=2)
    for what in LOOKS_AT
]
teacher = Agent(MODEL, instructions="You write to students: short, kind, concrete.")


async def judged(essay: str, criterion: dict, others: str) -> list[Points]:
    most = criterion["most"]
    prompt = f"{criterion['asks']} Points from 0 to {most}. The others say: {others}\n\n{essay}"
    replies = await asyncio.gather(*(judge.run(prompt) for judge in judges))
    return [Points(points=min(r.output.points, most), reason=r.output.reason) for r in replies]


async def run(essay: str) -> dict:
    rows, reasons = [], []
    for criterion in RUBRIC:
        points = await judged(essay, criterion, "nothing yet")
        given = [p.points for p in points]
        far = max(given) - min(given) > criterion["most"] / 2
        if far:
            points = await judged(essay, criterion, " / ".join(p.reason for p in points))
        middle = median(p.points for p in points)
        rows.append({
            "criterion": criterion["name"],
            "points": middle,
            "of": criterion["most"],
            "far_apart": far,
        })
        reasons += [p.reason for p in points]
    percent = round(100 * sum(r["points"] for r in rows) / sum(r["of"] for r in rows))
    comment = await teacher.run(f"Comment: {'; '.join(reasons)}\n\n{essay}")
    return {"percent": percent, "rows": rows, "comment": comment.output}


def main(essay: str) -> dict:
    return asyncio.run(run(essay))
