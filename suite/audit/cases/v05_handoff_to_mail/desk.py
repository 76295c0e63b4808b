"""A desk: one agent looks at what customers link to, another one writes to them."""
import smtplib
import sqlite3
from email.message import EmailMessage

import aiohttp
from agents import Agent, Runner, function_tool


@function_tool
async def open_link(url: str) -> str:
    """Opens a link that a customer sent."""
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as response:
            return await response.text()


@function_tool
def customer(number: int) -> str:
    """Looks a customer up."""
    cursor = sqlite3.connect("customers.db").cursor()
    cursor.execute("SELECT * FROM customers WHERE number = ?", (number,))
    return str(cursor.fetchone())


@function_tool
def write_to(address: str, text: str) -> str:
    """Writes to a customer."""
    message = EmailMessage()
    message["To"] = address
    message.set_content(text)
    server = smtplib.SMTP("mail.example.org")
    server.send_message(message)
    server.quit()
    return "sent"


writer = Agent(name="writer", model="gpt-4.1", instructions="You write to customers.", tools=[customer, write_to])
front = Agent(name="front", model="gpt-4.1", instructions="You look at requests.", tools=[open_link], handoffs=[writer])

if __name__ == "__main__":
    print(Runner.run_sync(front, input(), max_turns=10).final_output)
