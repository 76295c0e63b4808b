"""Minutes with pydantic-ai."""

import asyncio
import re

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import call

MODEL = "openai-chat:gpt-5-mini"


class Todo(BaseModel):
    who: str
    what: str
    due: str | None = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")


class Minutes(BaseModel):
    summary: str
    decisions: list[str]
    todos: list[Todo]


scribe = Agent(
    MODEL,
    output_type=Minutes,
    instructions="You write minutes. You note only what was said.",
    retries=2,
)
checker = Agent(
    MODEL,
    output_type=bool,
    instructions="You compare minutes with the transcript.",
    retries=2,
)


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
        return (await checker.run(f"Was this agreed? {what}\n\n{transcript}")).output


async def run(transcript: str, day: str) -> dict:
    known = call("people")
    prompt = f"Today is {day}. Minutes of this meeting, with days as 2026-01-31:\n\n{transcript}"
    minutes = (await scribe.run(prompt)).output
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
