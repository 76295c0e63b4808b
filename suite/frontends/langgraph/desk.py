"""A help desk: a model sorts, an agent with tools answers, a person may be asked."""
import os
from enum import Enum
from typing import Annotated, Literal

from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

MODEL = os.getenv("DESK_MODEL", "openai:gpt-4.1-mini")
RULES = ["Be brief.", "Never promise money."]


class Kind(str, Enum):
    ORDER = "order"
    OTHER = "other"


class Sorted(BaseModel):
    """What a mail is about."""

    kind: Literal["order", "complaint", "other"] = Field(description="what it is about")
    reason: str


class State(MessagesState):
    kind: str
    approved: bool


@tool
def find_order(number: int) -> str:
    """Finds an order."""
    return "on its way"


@tool("refund", return_direct=False)
def pay_back(number: int, euros: float = 0.0) -> str:
    """Pays an order back.

    Args:
        number: of the order
    """
    return "done"


tools = [find_order, pay_back]
llm = init_chat_model(MODEL, temperature=0)
sorter = llm.with_structured_output(Sorted)
helper = llm.bind_tools(tools)


def sort(state: State) -> Command[Literal["help", "ask", "__end__"]]:
    """Sorts."""
    rules = "\n".join(f"- {r}" for r in RULES)
    found = sorter.invoke([SystemMessage(f"Sort the mail.\n{rules}")] + state["messages"])
    if found.kind == Kind.ORDER:
        return Command(goto="help", update={"kind": found.kind})
    elif found.kind == "complaint":
        return Command(goto="ask", update={"kind": found.kind, "messages": [HumanMessage(f"Because: {found.reason}")]})
    return Command(goto=END)


def ask(state: State):
    answer = interrupt({"question": "May we pay it back?"})
    return {"approved": answer == "yes"}


def after_ask(state: State):
    return "help" if state["approved"] else END


def help(state: State):
    return {"messages": [helper.invoke([SystemMessage("Help.")] + state["messages"])]}


builder = StateGraph(State)
builder.add_node(sort)
builder.add_node("ask", ask)
builder.add_node("help", help)
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "sort")
builder.add_conditional_edges("ask", after_ask, ["help", END])
builder.add_conditional_edges("help", tools_condition)
builder.add_edge("tools", "help")
graph = builder.compile(checkpointer=MemorySaver(), interrupt_before=["ask"])
