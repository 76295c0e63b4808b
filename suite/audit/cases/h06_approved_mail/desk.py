"""Reads pages; a person allows each mail."""
import smtplib

import requests
from agents import Agent, Runner, function_tool


@function_tool
def read_page(url: str) -> str:
    """Reads a page."""
    return requests.get(url, timeout=5).text


@function_tool(needs_approval=True)
def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    with smtplib.SMTP("localhost") as server:
        server.sendmail("me@example.org", to, text)
    return "sent"


desk = Agent(name="desk", model="gpt-4.1", instructions="You help.", tools=[read_page, send_mail])
print(Runner.run_sync(desk, "Tell Bo what is new.", max_turns=5))
