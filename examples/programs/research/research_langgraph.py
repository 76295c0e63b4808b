"""Research as a graph: a branch for each question."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from world import call

model = ChatOpenAI(model="gpt-5-mini")


class Questions(BaseModel):
    questions: list[str] = Field(min_length=1, max_length=4)


class Found(BaseModel):
    answer: str
    cites: list[str]
    open: bool


class Report(BaseModel):
    text: str
    cites: list[str]


class State(TypedDict, total=False):
    topic: str
    questions: list[str]
    notes: Annotated[list[dict], operator.add]
    report: dict


class Job(TypedDict):
    question: str


def plan(state: State) -> State:
    planner = model.with_structured_output(Questions).with_retry(stop_after_attempt=2)
    reply = planner.invoke([
        ("system", "You plan research. Ask what can be looked up."),
        ("user", f"Which questions must be answered about this topic? {state['topic']}"),
    ])
    return {"questions": reply.questions}


def split(state: State) -> list[Send]:
    return [Send("research", {"question": question}) for question in state["questions"]]


def listed(sources: list[dict]) -> str:
    return "\n\n".join(f"[{s['id']}] {s['title']}\n{s['text']}" for s in sources)


def look_up(question: str, query: str) -> dict:
    sources = call("search", query=query)
    analyst = model.with_structured_output(Found).with_retry(stop_after_attempt=2)
    task = "Answer from the sources. `cites` are their ids. `open` if they don't say."
    found = analyst.invoke([
        ("system", "You answer from the sources you are given, and from nothing else."),
        ("user", f"{task} {question}\n\n{listed(sources)}"),
    ])
    known = [c for c in found.cites if any(s["id"] == c for s in sources)]
    return {"question": question, "answer": found.answer, "cites": known, "open": found.open}


def research(job: Job) -> State:
    question = job["question"]
    note = look_up(question, question)
    if note["open"]:
        task = "These sources did not answer it. Give another query."
        reply = model.invoke([
            ("system", "You plan research. Ask what can be looked up."),
            ("user", f"{task} {question}\n\nSo far: {note['answer']}"),
        ])
        note = look_up(question, reply.content)
    return {"notes": [note]}


def write(state: State) -> State:
    lines = [f"{n['question']} {n['answer']} [{', '.join(n['cites'])}]" for n in state["notes"]]
    report = model.with_structured_output(Report).invoke([
        ("system", "You write short reports. Each claim has its source in brackets."),
        ("user", f"Report on {state['topic']}:\n\n" + "\n".join(lines)),
    ])
    known = {cite for note in state["notes"] for cite in note["cites"]}
    if not set(report.cites) <= known:
        raise ValueError("the report cites what was not found")
    return {"report": report.model_dump()}


graph = StateGraph(State)
for node in (plan, research, write):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "plan")
graph.add_conditional_edges("plan", split, ["research"])
graph.add_edge("research", "write")
graph.add_edge("write", END)
app = graph.compile()


def main(topic: str) -> dict:
    return app.invoke({"topic": topic}, {"max_concurrency": 4})["report"]
