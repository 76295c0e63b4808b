"""A node that asks until its reply can be parsed, at most three times."""
import json
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    text: str
    data: dict


def extract(state: State):
    for attempt in range(3):
        reply = llm.invoke("Extract JSON: " + state["text"])
        try:
            return {"data": json.loads(reply.content)}
        except json.JSONDecodeError:
            continue
    return {"data": {}}


builder = StateGraph(State)
builder.add_node("extract", extract)
builder.add_edge(START, "extract")
builder.add_edge("extract", END)
print(builder.compile().invoke({"text": "Ann is 7"}))
