"""One agent reads the mail box, the next one does what it says."""
import imaplib

import psycopg2
from google.adk.agents import LlmAgent, SequentialAgent


def inbox() -> str:
    """The newest mails."""
    box = imaplib.IMAP4_SSL("mail.example.org")
    box.login("desk", "secret-from-the-vault")
    box.select("INBOX")
    _, found = box.search(None, "UNSEEN")
    return "\n".join(str(box.fetch(n, "(RFC822)")) for n in found[0].split())


def close_account(number: int) -> str:
    """Closes an account."""
    with psycopg2.connect("dbname=bank") as connection:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM accounts WHERE number = %s", (number,))
    return "closed"


reader = LlmAgent(name="reader", model="gemini-2.5-flash", instruction="List what is asked for.", tools=[inbox], output_key="wishes")
clerk = LlmAgent(name="clerk", model="gemini-2.5-flash", instruction="Do this: {wishes}", tools=[close_account])
root_agent = SequentialAgent(name="desk", sub_agents=[reader, clerk])
