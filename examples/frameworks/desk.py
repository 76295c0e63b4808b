import smtplib
import sqlite3

import requests
from agents import Agent, Runner, function_tool


def load(address):
    return requests.get(address, timeout=5).text


@function_tool
def open_link(url: str) -> str:
    """Opens a link that a customer sent."""
    return load(url)


@function_tool
def customer(number: int) -> str:
    """Looks a customer up."""
    rows = sqlite3.connect("customers.db").execute("SELECT * FROM customers WHERE number = ?", (number,))
    return str(rows.fetchone())


@function_tool
def write_to(address: str, text: str) -> str:
    """Writes to a customer."""
    with smtplib.SMTP("mail.example.org") as server:
        server.sendmail("desk@example.org", address, text)
    return "sent"


writer = Agent(name="writer", model="gpt-4.1", instructions="You write to customers.", tools=[customer, write_to])
front = Agent(name="front", model="gpt-4.1", instructions="You look at requests.", tools=[open_link], handoffs=[writer])
Runner.run_sync(front, "Answer the last request.", max_turns=10)
