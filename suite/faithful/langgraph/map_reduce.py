"""`Send` to a node for each item of a list."""
import json
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

llm = ChatOpenAI(model="m")


class Subjects(BaseModel):
    subjects: list[str]


class State(TypedDict):
    topic: str
    subjects: list
    jokes: Annotated[list, operator.add]
    best: str


class Job(TypedDict):
    subject: str


def plan(state: State):
    found = llm.with_structured_output(Subjects).invoke(f"Name subjects of {state['topic']}.")
    return {"subjects": found.subjects}


def spread(state: State):
    return [Send("joke", {"subject": s}) for s in state["subjects"]]


def joke(state: Job):
    return {"jokes": [llm.invoke(f"A joke about {state['subject']}").content]}


def best(state: State):
    jokes = "; ".join(state["jokes"])
    return {"best": llm.invoke(f"Which is best? {jokes}").content}


builder = StateGraph(State)
builder.add_node("plan", plan)
builder.add_node("joke", joke)
builder.add_node("best", best)
builder.add_edge(START, "plan")
builder.add_conditional_edges("plan", spread, ["joke"])
builder.add_edge("joke", "best")
builder.add_edge("best", END)
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"topic": "animals"})))
