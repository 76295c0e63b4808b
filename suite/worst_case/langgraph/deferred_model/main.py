"""A node whose helper chooses the model and asks it twice."""
from typing import TypedDict

from langchain.chat_models import init_chat_model
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    text: str


def ask(text: str) -> str:
    model = init_chat_model("openai:gpt-4o-mini")
    draft = model.invoke(text).content
    return model.invoke("Check: " + draft).content


def work(state: State):
    return {"text": ask(state["text"])}


builder = StateGraph(State)
builder.add_node(work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
print(builder.compile().invoke({"text": "hello"}))
