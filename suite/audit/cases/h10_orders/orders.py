"""Helps a clerk at the console with orders."""
import asyncio
import sqlite3

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


def find_order(number: int) -> str:
    """Looks an order up."""
    return str(sqlite3.connect("shop.db").execute("SELECT state FROM orders WHERE number = ?", (number,)).fetchone())


def refund(number: int) -> str:
    """Pays an order back."""
    with sqlite3.connect("shop.db") as connection:
        connection.execute("UPDATE orders SET state = 'refunded' WHERE number = ?", (number,))
    return "paid back"


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o")
    agent = AssistantAgent("clerk", model_client=client, system_message="You help the clerk.", tools=[find_order, refund])
    print(await agent.run(task=input("> ")))


asyncio.run(main())
