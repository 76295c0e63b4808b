"""Reads pages and the sales of the company, and sends reports."""
import smtplib

from google.adk.agents import Agent
from google.adk.tools import load_web_page
from google.cloud import bigquery


def sales(query: str) -> str:
    """Asks the sales of the company."""
    client = bigquery.Client()
    return str(list(client.query(query).result()))


def send_report(to: str, text: str) -> str:
    """Sends a report."""
    server = smtplib.SMTP("localhost")
    server.sendmail("reports@example.org", [to], text)
    return "sent"


root_agent = Agent(
    name="reporter",
    model="gemini-2.5-flash",
    instruction="You write reports about markets.",
    tools=[load_web_page.load_web_page, sales, send_report],
)
