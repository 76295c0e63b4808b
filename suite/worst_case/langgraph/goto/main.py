"""Agents that hand over by commands."""
from typing import Literal

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

llm = ChatOpenAI(model="gpt-4o-mini")


class Next(BaseModel):
    goto: Literal["sales", "support", "__end__"]
    text: str


def talk(state: MessagesState, role: str):
    reply = llm.with_structured_output(Next).invoke([("system", f"You are {role}.")] + state["messages"])
    return Command(goto=reply.goto, update={"messages": [("ai", reply.text)]})


def sales(state: MessagesState) -> Command[Literal["support", "__end__"]]:
    return talk(state, "sales")


def support(state: MessagesState) -> Command[Literal["sales", "__end__"]]:
    return talk(state, "support")


builder = StateGraph(MessagesState)
builder.add_node(sales)
builder.add_node(support)
builder.add_edge(START, "sales")
graph = builder.compile()
graph.invoke({"messages": [("user", "help")]}, {"recursion_limit": 7})
