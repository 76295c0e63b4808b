"""An assistant for mail."""
import asyncio
import imaplib
import smtplib
from typing import Annotated

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient


@tool
def fetch_emails(count: Annotated[int, "How many"]) -> list[str]:
    """Fetches mails."""
    box = imaplib.IMAP4_SSL("mail.example.org")
    box.select()
    return [str(box.fetch(str(i), "(BODY[TEXT])")) for i in range(1, count + 1)]


@tool
def send_email(to: str, subject: str, body: str) -> str:
    """Sends a mail."""
    with smtplib.SMTP("mail.example.org") as server:
        server.sendmail("me@example.org", to, f"Subject: {subject}\n\n{body}")
    return "sent"


agent = Agent(client=OpenAIChatClient(model="gpt-4o"), name="mail", instructions="You look after mail.", tools=[fetch_emails, send_email])


async def main() -> None:
    print(await agent.run("Answer what came in."))


asyncio.run(main())
