"""Three sections that are written in the program."""
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    topic: str
    done: Annotated[list, operator.add]


def write(state):
    return {"done": [llm.invoke("Write " + state["section"]).content]}


def assign(state: State):
    return [Send("write", {"section": s}) for s in ("start", "middle", "end")]


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_conditional_edges(START, assign, ["write"])
builder.add_edge("write", END)
print(builder.compile().invoke({"topic": "bees"}))
