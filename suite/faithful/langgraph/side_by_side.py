"""Two parallel nodes whose results are joined."""
import json
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="m")


class State(TypedDict):
    topic: str
    parts: Annotated[list, operator.add]
    whole: str


def joke(state: State):
    return {"parts": [llm.invoke(f"A joke about {state['topic']}").content]}


def poem(state: State):
    return {"parts": [llm.invoke(f"A poem about {state['topic']}").content]}


def join(state: State):
    text = "\n".join(state["parts"])
    return {"whole": llm.invoke(f"Make one of these:\n{text}").content}


builder = StateGraph(State)
builder.add_node("poem", poem)
builder.add_node("joke", joke)
builder.add_node("join", join)
builder.add_edge(START, "poem")
builder.add_edge(START, "joke")
builder.add_edge(["poem", "joke"], "join")
builder.add_edge("join", END)
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"topic": "cats"})))
