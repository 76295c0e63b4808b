"""A node that asks the provider by its own client."""
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from openai import OpenAI

client = OpenAI()


class State(TypedDict):
    text: str


def ask(state: State):
    reply = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": state["text"]}])
    return {"text": reply.choices[0].message.content}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
builder.add_edge("ask", END)
print(builder.compile().invoke({"text": "hello"}))
