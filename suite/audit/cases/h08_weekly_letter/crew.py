"""Writes to the team what the own database says."""
import smtplib
import sqlite3

from crewai import Agent, Crew, Task
from crewai.tools import tool

TEAM = ["team@example.org"]


@tool("figures")
def figures() -> str:
    """The figures of the week."""
    rows = sqlite3.connect("week.db").execute("SELECT day, amount FROM sales").fetchall()
    return str(rows)


@tool("letter")
def letter(text: str) -> str:
    """Writes to the team."""
    with smtplib.SMTP("localhost") as server:
        server.sendmail("bot@example.org", TEAM, text)
    return "sent"


clerk = Agent(role="Clerk", goal="Report.", backstory="Exact.", llm="gpt-4o", tools=[figures, letter])
report = Task(description="Report the week.", expected_output="A letter.", agent=clerk)
Crew(agents=[clerk], tasks=[report]).kickoff()
