"""An inbox: the program around the function of inbox.baml."""

import asyncio
import re

from baml_client.async_client import b
from baml_client.types import Meeting, Other, Reply
from world import call

MAX_EVENTS = 5


async def sort(mail: dict, limit: asyncio.Semaphore) -> Reply | Meeting | Other:
    async with limit:
        try:
            return await b.Sort(mail["subject"], mail["body"])
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
