"""Questions for each of several things: a comprehension, a loop that gathers, and some that are kept."""
import asyncio
import json
from typing import List, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

llm = ChatOpenAI(model="m")


class Topics(BaseModel):
    topics: List[str]


class State(TypedDict):
    subject: str
    topics: List[str]
    notes: List[str]
    lines: List[str]
    report: str


def plan(state: State):
    reply = llm.with_structured_output(Topics).invoke(f"Topics of {state['subject']}")
    return {"topics": [topic for topic in reply.topics if topic != "none"]}


async def note(state: State):
    replies = await asyncio.gather(*[llm.ainvoke(f"A note on {topic}.") for topic in state["topics"]])
    return {"notes": [reply.content for reply in replies]}


def line(state: State):
    lines = []
    for text in state["notes"]:
        reply = llm.invoke("Shorten: " + text)
        lines.append(f"- {reply.content}")
    return {"lines": lines}


def write(state: State):
    listed = "\n".join(state["lines"])
    return {"report": llm.invoke(f"Write of\n{listed}").content}


graph = StateGraph(State).add_sequence([plan, note, line, write])
graph.add_edge(START, "plan")
graph.add_edge("write", END)
graph = graph.compile()

if __name__ == "__main__":
    print(json.dumps(asyncio.run(graph.ainvoke({"subject": "bees"}))))
