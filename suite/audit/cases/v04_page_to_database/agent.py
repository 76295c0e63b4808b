"""Answers questions with pages and the shop's database, and posts what it found."""
import sqlite3

import requests
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent
from web import load


@tool
def read_page(address: str) -> str:
    """Reads a page."""
    return load(address)


@tool
def run_sql(query: str) -> str:
    """Asks the shop's database."""
    connection = sqlite3.connect("shop.db")
    rows = connection.execute(query).fetchall()
    connection.commit()
    return str(rows)


@tool
def post_comment(address: str, text: str) -> str:
    """Posts a comment."""
    return requests.post(address, json={"text": text}).text


agent = create_react_agent("openai:gpt-4o", [read_page, run_sql, post_comment], prompt="You help in a shop.")
print(agent.invoke({"messages": [("user", "Compare our prices.")]}, {"recursion_limit": 20}))
