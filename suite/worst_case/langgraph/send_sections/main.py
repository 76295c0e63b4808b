"""A report whose sections are written side by side; how many is the planner's choice, at most four."""
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.constants import Send
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

llm = ChatOpenAI(model="gpt-4o-mini")


class Sections(BaseModel):
    names: list[str] = Field(max_length=4)


class State(TypedDict):
    topic: str
    sections: list[str]
    done: Annotated[list, operator.add]


def plan(state: State):
    return {"sections": llm.with_structured_output(Sections).invoke(state["topic"]).names}


def write(state):
    return {"done": [llm.invoke("Write " + state["section"]).content]}


def assign(state: State):
    return [Send("write", {"section": s}) for s in state["sections"]]


builder = StateGraph(State)
builder.add_node("plan", plan)
builder.add_node("write", write)
builder.add_edge(START, "plan")
builder.add_conditional_edges("plan", assign, ["write"])
builder.add_edge("write", END)
print(builder.compile().invoke({"topic": "bees"}))
