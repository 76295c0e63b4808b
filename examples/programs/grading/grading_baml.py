"""Grading: the program around the functions of grading.baml."""

import asyncio
from statistics import median

from baml_client.async_client import b
from baml_client.types import Points

RUBRIC = [
    {"name": "thesis", "asks": "Is there one claim, and is it clear?", "most": 10},
    {"name": "evidence", "asks": "Is each claim supported by the sources?", "most": 20},
]
LOOKS_AT = ["language", "arguments", "sources"]


async def judged(essay: str, criterion: dict, others: str) -> list[Points]:
    asks, most = criterion["asks"], criterion["most"]
    replies = await asyncio.gather(*(b.Grade(essay, what, asks, most, others) for what in LOOKS_AT))
    return [Points(points=min(reply.points, most), reason=reply.reason) for reply in replies]


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
    comment = await b.Comment(essay, "; ".join(reasons))
    return {"percent": percent, "rows": rows, "comment": comment}


def main(essay: str) -> dict:
    return asyncio.run(run(essay))
