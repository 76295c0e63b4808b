"""An inbox as a graph: a branch for each mail, then what is done."""

import operator
import re
from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel
from world import call

MAX_EVENTS = 5
model = ChatOpenAI(model="gpt-5-mini")


class Reply(BaseModel):
    kind: Literal["reply"]
    text: str


class Meeting(BaseModel):
    kind: Literal["meeting"]
    title: str
    start: str


class Other(BaseModel):
    kind: Literal["archive", "nothing"]


class Choice(BaseModel):
    choice: Reply | Meeting | Other


class State(TypedDict, total=False):
    mails: list[dict]
    sorted: Annotated[list[tuple[int, Reply | Meeting | Other]], operator.add]
    done: list[dict]


class Job(TypedDict):
    number: int
    mail: dict


def unread(state: State) -> State:
    return {"mails": call("unread")}


def split(state: State) -> list[Send] | str:
    jobs = enumerate(state["mails"])
    return [Send("sort", {"number": n, "mail": mail}) for n, mail in jobs] or "act"


def sort(job: Job) -> State:
    mail = job["mail"]
    secretary = model.with_structured_output(Choice).with_retry(stop_after_attempt=2)
    prompt = f"What should be done with this mail? {mail['subject']}\n\n{mail['body']}"
    try:
        reply = secretary.invoke([("system", "You handle the mails of an engineer."), ("user", prompt)])
        return {"sorted": [(job["number"], reply.choice)]}
    except Exception:
        return {"sorted": [(job["number"], Other(kind="nothing"))]}


def draft(to: str, text: str) -> bool:
    if re.search(r"https?://|www\.", text):
        raise PermissionError("the answer has a link")
    return call("draft", to=to, text=text)


def act(state: State) -> State:
    done, events = [], 0
    for number, found in sorted(state.get("sorted", []), key=lambda pair: pair[0]):
        mail = state["mails"][number]
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
    return {"done": done}


graph = StateGraph(State)
for node in (unread, sort, act):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "unread")
graph.add_conditional_edges("unread", split, ["sort", "act"])
graph.add_edge("sort", "act")
graph.add_edge("act", END)
app = graph.compile()


def main() -> list[dict]:
    return app.invoke({}, {"max_concurrency": 4})["done"]
