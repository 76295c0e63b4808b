"""A tool of an agent that runs a graph."""
from typing import TypedDict

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    text: str


def translate(state: State):
    return {"text": llm.invoke("Translate " + state["text"]).content}


def check(state: State):
    return {"text": llm.invoke("Check " + state["text"]).content}


builder = StateGraph(State)
builder.add_sequence([translate, check])
builder.add_edge(START, "translate")
builder.add_edge("check", END)
flow = builder.compile()


@tool
def translated(text: str) -> str:
    """Translates a text."""
    return flow.invoke({"text": text})["text"]


agent = create_react_agent(llm, [translated], prompt="Translate with the tool.")
agent.invoke({"messages": [("user", "Good morning")]}, {"recursion_limit": 8})
