"""Questions about a handbook as a graph."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from world import call

model = ChatOpenAI(model="gpt-5-mini")


class Score(BaseModel):
    points: float = Field(ge=0, le=10)


class Quote(BaseModel):
    id: str
    words: str


class Reply(BaseModel):
    text: str
    quotes: list[Quote]


class State(TypedDict, total=False):
    question: str
    history: list[str]
    passages: list[dict]
    scored: Annotated[list[tuple[float, int]], operator.add]
    answer: dict


class Job(TypedDict):
    question: str
    passage: dict
    index: int


def rewrite(state: State) -> State:
    if not state["history"]:
        return {}
    prompt = "Make one question that can be understood alone."
    return {"question": model.invoke(f"{prompt} Before: {state['history']}. Now: {state['question']}").content}


def retrieve(state: State) -> State:
    return {"passages": call("retrieve", question=state["question"], most=8)}


def split(state: State) -> list[Send] | str:
    jobs = enumerate(state["passages"])
    return [Send("score", {"question": state["question"], "passage": p, "index": i}) for i, p in jobs] or "answer"


def score(job: Job) -> State:
    judge = model.with_structured_output(Score).with_retry(stop_after_attempt=2)
    try:
        reply = judge.invoke([
            ("system", "You judge how well a passage answers a question, from 0 to 10."),
            ("user", f"Question: {job['question']}\n\nPassage: {job['passage']['text']}"),
        ])
        return {"scored": [(reply.points, job["index"])]}
    except Exception:
        return {"scored": [(0, job["index"])]}


def tidy(text: str) -> str:
    return " ".join(line.strip() for line in text.split("\n")).lower()


def is_literal(quote: Quote, passages: list[dict]) -> bool:
    return any(p["id"] == quote.id and tidy(quote.words) in tidy(p["text"]) for p in passages)


def answer(state: State) -> State:
    ranked = sorted(state.get("scored", []), key=lambda pair: (-pair[0], pair[1]))
    good = [state["passages"][index] for points, index in ranked if points >= 5]
    if not good:
        return {"answer": {"Unknown": {"closest": [p["id"] for p in state["passages"]]}}}
    best = good[:3]
    listed = "\n\n".join(f"[{p['id']}] {p['text']}" for p in best)
    expert = model.with_structured_output(Reply).with_retry(stop_after_attempt=2)
    reply = expert.invoke([
        ("system", "You answer with what the passages say. Quote them word by word."),
        ("user", f"{state['question']}\n\n{listed}"),
    ])
    quotes = [quote.model_dump() for quote in reply.quotes if is_literal(quote, best)]
    if not quotes:
        return {"answer": {"Unknown": {"closest": [p["id"] for p in best]}}}
    return {"answer": {"Known": {"text": reply.text, "quotes": quotes}}}


graph = StateGraph(State)
for node in (rewrite, retrieve, score, answer):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "rewrite")
graph.add_edge("rewrite", "retrieve")
graph.add_conditional_edges("retrieve", split, ["score", "answer"])
graph.add_edge("score", "answer")
graph.add_edge("answer", END)
app = graph.compile()


def main(question: str, history: list[str] = []) -> dict:
    return app.invoke({"question": question, "history": history}, {"max_concurrency": 4})["answer"]
