"""A chain of prompts with a gate."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    topic: str
    joke: str


def write(state: State):
    return {"joke": llm.invoke(f"Write a joke about {state['topic']}").content}


def gate(state: State):
    return "good" if "!" in state["joke"] else "bad"


def improve(state: State):
    return {"joke": llm.invoke(f"Improve: {state['joke']}").content}


def polish(state: State):
    return {"joke": llm.invoke(f"Polish: {state['joke']}").content}


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("improve", improve)
builder.add_node("polish", polish)
builder.add_edge(START, "write")
builder.add_conditional_edges("write", gate, {"good": END, "bad": "improve"})
builder.add_edge("improve", "polish")
builder.add_edge("polish", END)
print(builder.compile().invoke({"topic": "cats"}))
