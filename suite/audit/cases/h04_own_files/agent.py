"""Answers from own notes and an own database."""
import sqlite3
from pathlib import Path

from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent


@tool
def note(name: str) -> str:
    """Reads a note."""
    return (Path("notes") / Path(name).name).read_text()


@tool
def orders(customer: int) -> str:
    """The orders of a customer."""
    rows = sqlite3.connect("shop.db").execute("SELECT * FROM orders WHERE customer = ?", (customer,))
    return str(rows.fetchall())


agent = create_react_agent("openai:gpt-4o", [note, orders], prompt="You answer from what we have.")
print(agent.invoke({"messages": [("user", "What did Bo order?")]}, {"recursion_limit": 10}))
