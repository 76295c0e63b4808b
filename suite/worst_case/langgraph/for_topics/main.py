"""A graph that is run for each topic."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    topic: str
    text: str


def write(state: State):
    return {"text": llm.invoke(state["topic"]).content}


builder = StateGraph(State)
builder.add_node("write", write)
builder.set_entry_point("write")
builder.set_finish_point("write")
graph = builder.compile()

for topic in ["bees", "cars", "seas"]:
    print(graph.invoke({"topic": topic})["text"])
