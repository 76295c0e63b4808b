"""An inbox with pydantic-ai."""

import asyncio
import re
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent
from world import call

MAX_EVENTS = 5


class Reply(BaseModel):
    kind: Literal["reply"]
    text: str


class Meeting(BaseModel):
    kind: Literal["meeting"]
    title: str
    start: str


class Other(BaseModel):
    kind: Literal["archive", "nothing"]


Sorted = Reply | Meeting | Other

secretary = Agent(
    "openai-chat:gpt-5-mini",
    output_type=[Reply, Meeting, Other],
    instructions="You handle the mails of an engineer.",
    retries=2,
)


async def sort(mail: dict, limit: asyncio.Semaphore) -> Sorted:
    async with limit:
        prompt = f"What should be done with this mail? {mail['subject']}\n\n{mail['body']}"
        try:
            return (await secretary.run(prompt)).output
        except Exception:
            return Other(kind="nothing")


def draft(to: str, text: str) -> bool:
    if re.search(r"https?://|www\.", text):
        raise PermissionError("the answer has a link")
    return call("draft", to=to, text=text)


async def run() -> list[dict]:
    mails = call("unread")
    limit = asyncio.Semaphore(4)
    all_sorted = await asyncio.gather(*(sort(mail, limit) for mail in mails))
    done, events = [], 0
    for mail, found in zip(mails, all_sorted):
        match found:
            case Reply():
                draft(mail["from"], found.text)
            case Meeting():
                events += 1
                if events > MAX_EVENTS:
                    raise PermissionError("too many events")
                call("add_event", title=found.title, start=found.start)
            case Other(kind="archive"):
                call("archive", id=mail["id"])
        done.append({"id": mail["id"], "done": found.kind})
    return done


def main() -> list[dict]:
    return asyncio.run(run())
