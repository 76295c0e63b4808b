"""A node that asks for several texts at once."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    text: str
    ideas: list[str]


def ideas(state: State):
    replies = llm.batch([f"{n}. idea on {state['text']}" for n in range(4)])
    return {"ideas": [r.content for r in replies]}


def choose(state: State):
    return {"text": llm.invoke(" ".join(state["ideas"])).content}


builder = StateGraph(State)
builder.add_node("ideas", ideas)
builder.add_node("choose", choose)
builder.add_edge(START, "ideas")
builder.add_edge("ideas", "choose")
builder.add_edge("choose", END)
print(builder.compile().invoke({"text": "bees", "ideas": []}))
