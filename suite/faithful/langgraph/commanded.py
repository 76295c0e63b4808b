"""A node that returns a `Command` after a structured reply."""
from typing import Literal

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, Field

llm = ChatOpenAI(model="gpt-4o-mini")


class Route(BaseModel):
    """Who goes on."""

    next: Literal["poet", "critic", "FINISH"] = Field(description="Who is next")
    reason: str


def supervisor(state: MessagesState) -> Command[Literal["poet", "critic", "__end__"]]:
    messages = [{"role": "system", "content": "Decide who is next."}] + state["messages"]
    decision = llm.with_structured_output(Route).invoke(messages)
    goto = decision.next
    if goto == "FINISH":
        goto = END
    return Command(goto=goto)


def poet(state: MessagesState) -> Command[Literal["supervisor"]]:
    reply = llm.invoke([SystemMessage(content="Write a line.")] + state["messages"])
    return Command(update={"messages": [HumanMessage(content=reply.content, name="poet")]}, goto="supervisor")


def critic(state: MessagesState) -> Command[Literal["supervisor"]]:
    last = state["messages"][-1].content
    reply = llm.invoke(f"Judge: {last}")
    return Command(update={"messages": [HumanMessage(content=reply.content, name="critic")]}, goto="supervisor")


builder = StateGraph(MessagesState)
builder.add_node("supervisor", supervisor)
builder.add_node("poet", poet)
builder.add_node("critic", critic)
builder.add_edge(START, "supervisor")
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "A poem")]})["messages"][-1].content)
