"""Moderation as a graph: two moderators at the same time, and a third where they disagree."""

import operator
from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from world import call

model = ChatOpenAI(model="gpt-5-mini")


class Judgment(BaseModel):
    rule: Literal["none", "insult", "spam", "private data"]
    sure: float = Field(ge=0, le=1)


class State(TypedDict, total=False):
    text: str
    judgments: Annotated[list[Judgment], operator.add]
    decision: dict | str


def ask(system: str, question: str) -> Judgment:
    moderator = model.with_structured_output(Judgment).with_retry(stop_after_attempt=2)
    return moderator.invoke([("system", system), ("user", question)])


def strict(state: State) -> State:
    question = f"Which rule does this post break?\n\n{state['text']}"
    return {"judgments": [ask("You moderate a forum of gardeners. You are strict.", question)]}


def lenient(state: State) -> State:
    question = f"Which rule does this post break?\n\n{state['text']}"
    return {"judgments": [ask("You moderate a forum of gardeners. You let people speak.", question)]}


def decide(state: State) -> State:
    a, b = state["judgments"]
    last = a
    if a.rule != b.rule:
        question = f"One says {a.rule}, one says {b.rule}. Which rule does this post break?"
        last = ask("You decide where two moderators disagree.", f"{question}\n\n{state['text']}")
        if last.sure < 0.7:
            return {"decision": {"Ask": {"first": a.rule, "second": b.rule}}}
    return {"decision": "Show" if last.rule == "none" else {"Hide": {"rule": last.rule}}}


graph = StateGraph(State)
for node in (strict, lenient, decide):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "strict")
graph.add_edge(START, "lenient")
graph.add_edge(["strict", "lenient"], "decide")
graph.add_edge("decide", END)
app = graph.compile()


def main(posts: list[dict]) -> list[dict]:
    out = []
    for post in posts:
        decision = app.invoke({"text": post["text"]})["decision"]
        if isinstance(decision, dict) and "Hide" in decision:
            call("hide", id=post["id"], rule=decision["Hide"]["rule"])
        out.append({"id": post["id"], "decision": decision})
    return out
