"""Three nodes side by side and one that joins them."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    topic: str
    joke: str
    poem: str
    story: str
    all: str


def joke(state: State):
    return {"joke": llm.invoke("Joke on " + state["topic"]).content}


def poem(state: State):
    return {"poem": llm.invoke("Poem on " + state["topic"]).content}


def story(state: State):
    return {"story": llm.invoke("Story on " + state["topic"]).content}


def combine(state: State):
    return {"all": state["joke"] + state["poem"] + state["story"]}


builder = StateGraph(State)
for node in (joke, poem, story):
    builder.add_node(node)
    builder.add_edge(START, node.__name__)
    builder.add_edge(node.__name__, "combine")
builder.add_node(combine)
builder.add_edge("combine", END)
print(builder.compile().invoke({"topic": "cats"})["all"])
