"""What is not known stays unknown, with its place."""
import operator
import random
from dataclasses import dataclass, field
from typing import Annotated, Optional, TypedDict

import requests
from elsewhere import agent_node, pick
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

llm = ChatOpenAI(model="m")


def larger(old, new):
    return new if new > old else old


@dataclass
class State:
    query: str = ""
    pages: Annotated[list, operator.add] = field(default_factory=list)
    best: Annotated[int, larger] = 0
    words: Annotated[list, pick] = field(default_factory=list)
    answer: Optional[str] = None


class Fetcher:
    def __init__(self, base):
        self.base = base

    def __call__(self, state: State):
        page = requests.get(f"{self.base}/{state.query}", timeout=3)
        return {"pages": [page.text], "best": len(state.pages)}


def answer(state: State, config):
    pages = "\n\n".join(state.pages[-3:])
    text = llm.invoke([("system", "Answer."), ("user", f"{state.query}\n{pages}")]).content.strip()
    for word in text.split():
        if random.random() > 0.5:
            text = text.replace(word, "")
    return {"answer": text, "color": "blue"}


def again(state: State):
    if state.best >= 3 and not state.answer is None:
        return ["answer", "judge"]
    return pick(state)


def lost(state: State):
    state.answer = "nobody comes here"
    return state


g = StateGraph(State)
g.add_node("fetch", Fetcher("https://example.org"), retry_policy=RetryPolicy())
g.add_node("answer", answer)
g.add_node("judge", agent_node)
g.add_node("lost", lost)
g.add_edge(START, "fetch")
g.add_conditional_edges("fetch", again, {"answer": "answer", "judge": "judge", "fetch": "fetch", "end": END})
g.add_edge("judge", "nowhere")
g.add_edge("answer", END)
app = g.compile()
app.invoke({"query": "bees"}, config={"recursion_limit": pick(3)})
