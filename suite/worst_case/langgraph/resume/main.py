"""A graph that is interrupted, and goes on with what a person says."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    draft: str
    final: str


def write(state: State):
    return {"draft": llm.invoke("Write a mail").content}


def review(state: State):
    comment = llm.invoke("Comment: " + state["draft"]).content
    answer = interrupt(comment)
    return {"final": llm.invoke("Rewrite: " + state["draft"] + answer).content}


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("review", review)
builder.add_edge(START, "write")
builder.add_edge("write", "review")
builder.add_edge("review", END)
graph = builder.compile(checkpointer=MemorySaver())
config = {"configurable": {"thread_id": "7"}}
graph.invoke({"draft": ""}, config)
print(graph.invoke(Command(resume="shorter"), config))
