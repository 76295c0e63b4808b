"""A model that chooses a route, and a `Command` that follows it."""
import json
from typing import Literal, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

llm = ChatOpenAI(model="m")


class Route(BaseModel):
    to: Literal["money", "machines"]


class State(TypedDict):
    question: str
    kind: str
    answer: str


def triage(state: State) -> Command[Literal["money", "machines"]]:
    choice = llm.with_structured_output(Route).invoke(
        [SystemMessage(content="Who knows?"), HumanMessage(content=state["question"])]
    )
    if choice.to == "money":
        return Command(goto="money", update={"kind": "about money"})
    return Command(goto="machines", update={"kind": "about machines"})


def money(state: State):
    return {"answer": llm.invoke("Count: " + state["question"]).content}


def machines(state: State):
    return {"answer": llm.invoke("Repair: " + state["question"]).content}


graph = (
    StateGraph(State)
    .add_node(triage)
    .add_node(money)
    .add_node(machines)
    .add_edge(START, "triage")
    .add_edge("money", END)
    .add_edge("machines", END)
    .compile()
)

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"question": "I paid twice"})))
