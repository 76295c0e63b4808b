"""A router that asks the model which way to go."""
from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

llm = ChatOpenAI(model="gpt-4o-mini")


class Route(BaseModel):
    step: Literal["poem", "joke"]


class State(TypedDict):
    input: str
    output: str


def poem(state: State):
    return {"output": llm.invoke("Poem: " + state["input"]).content}


def joke(state: State):
    return {"output": llm.invoke("Joke: " + state["input"]).content}


def route(state: State) -> Literal["poem", "joke"]:
    return llm.with_structured_output(Route).invoke(state["input"]).step


builder = StateGraph(State)
builder.add_node("poem", poem)
builder.add_node("joke", joke)
builder.add_conditional_edges(START, route)
builder.add_edge("poem", END)
builder.add_edge("joke", END)
print(builder.compile().invoke({"input": "cats"}))
