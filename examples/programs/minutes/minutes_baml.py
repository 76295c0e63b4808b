"""Minutes: the program around the functions of minutes.baml."""

import asyncio
import re

from baml_client.async_client import b
from world import call


def create(login: str, title: str, due: str | None, key: str) -> str:
    if login not in [person["login"] for person in call("people")]:
        raise PermissionError("nobody of the project")
    if re.search(r"https?://|www\.", title):
        raise PermissionError("the title has a link")
    return call("create", login=login, title=title, due=due, idempotency_key=key)


def login_of(who: str, people: list[dict]) -> str | None:
    name = who.strip().lower()
    return next((p["login"] for p in people if p["name"].lower().startswith(name)), None)


async def was_said(transcript: str, what: str, limit: asyncio.Semaphore) -> bool:
    async with limit:
        return await b.WasSaid(transcript, what)


async def run(transcript: str, day: str) -> dict:
    known = call("people")
    minutes = await b.Write(transcript, day)
    limit = asyncio.Semaphore(4)
    agreed = await asyncio.gather(*(was_said(transcript, todo.what, limit) for todo in minutes.todos))
    created, left = [], []
    for todo, is_agreed in zip(minutes.todos, agreed):
        login = login_of(todo.who, known)
        if login and is_agreed and (todo.due or day) >= day:
            created.append(create(login, todo.what, todo.due, f"{day} {todo.what}"))
        else:
            left.append(todo.model_dump())
    return {"summary": minutes.summary, "created": created, "open": left}


def main(transcript: str, day: str) -> dict:
    return asyncio.run(run(transcript, day))
