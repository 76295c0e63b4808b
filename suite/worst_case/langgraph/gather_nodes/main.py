"""A node that asks several times at the same time."""
import asyncio
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph, START, END

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    question: str
    answers: list[str]


async def vote(state: State):
    replies = await asyncio.gather(*[llm.ainvoke(state["question"]) for _ in range(5)])
    return {"answers": [r.content for r in replies]}


async def choose(state: State):
    best = await llm.ainvoke("Choose: " + " | ".join(state["answers"]))
    return {"answers": [best.content]}


builder = StateGraph(State)
builder.add_node("vote", vote)
builder.add_node("choose", choose)
builder.add_edge(START, "vote")
builder.add_edge("vote", "choose")
builder.add_edge("choose", END)
print(asyncio.run(builder.compile().ainvoke({"question": "2 + 2?"})))
