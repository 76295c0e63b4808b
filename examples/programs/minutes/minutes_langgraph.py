"""Minutes as a graph: a branch for each task that was noted."""

import operator
import re
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from world import call

model = ChatOpenAI(model="gpt-5-mini")


class Todo(BaseModel):
    who: str
    what: str
    due: str | None = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")


class Minutes(BaseModel):
    summary: str
    decisions: list[str]
    todos: list[Todo]


class Opinion(BaseModel):
    agreed: bool


class State(TypedDict, total=False):
    transcript: str
    day: str
    minutes: Minutes
    agreed: Annotated[list[int], operator.add]
    result: dict


class Job(TypedDict):
    transcript: str
    number: int
    what: str


def write(state: State) -> State:
    scribe = model.with_structured_output(Minutes).with_retry(stop_after_attempt=2)
    task = f"Today is {state['day']}. Minutes of this meeting, with days as 2026-01-31:"
    minutes = scribe.invoke([
        ("system", "You write minutes. You note only what was said."),
        ("user", f"{task}\n\n{state['transcript']}"),
    ])
    return {"minutes": minutes}


def split(state: State) -> list[Send] | str:
    todos, transcript = enumerate(state["minutes"].todos), state["transcript"]
    jobs = [{"transcript": transcript, "number": n, "what": todo.what} for n, todo in todos]
    return [Send("was_said", job) for job in jobs] or "create_all"


def was_said(job: Job) -> State:
    checker = model.with_structured_output(Opinion).with_retry(stop_after_attempt=2)
    opinion = checker.invoke([
        ("system", "You compare minutes with the transcript."),
        ("user", f"Was this agreed? {job['what']}\n\n{job['transcript']}"),
    ])
    return {"agreed": [job["number"]] if opinion.agreed else []}


def create(login: str, title: str, due: str | None, key: str) -> str:
    if login not in [person["login"] for person in call("people")]:
        raise PermissionError("nobody of the project")
    if re.search(r"https?://|www\.", title):
        raise PermissionError("the title has a link")
    return call("create", login=login, title=title, due=due, idempotency_key=key)


def login_of(who: str, people: list[dict]) -> str | None:
    name = who.strip().lower()
    return next((p["login"] for p in people if p["name"].lower().startswith(name)), None)


def create_all(state: State) -> State:
    known, day, minutes = call("people"), state["day"], state["minutes"]
    created, left = [], []
    for number, todo in enumerate(minutes.todos):
        login = login_of(todo.who, known)
        if login and number in state.get("agreed", []) and (todo.due or day) >= day:
            created.append(create(login, todo.what, todo.due, f"{day} {todo.what}"))
        else:
            left.append(todo.model_dump())
    return {"result": {"summary": minutes.summary, "created": created, "open": left}}


graph = StateGraph(State)
for node in (write, was_said, create_all):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "write")
graph.add_conditional_edges("write", split, ["was_said", "create_all"])
graph.add_edge("was_said", "create_all")
graph.add_edge("create_all", END)
app = graph.compile()


def main(transcript: str, day: str) -> dict:
    return app.invoke({"transcript": transcript, "day": day}, {"max_concurrency": 4})["result"]
