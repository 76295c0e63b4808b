"""Reads bills; a person allows each payment."""
import asyncio

import requests
from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatClient


@tool
def read_bill(url: str) -> str:
    """Reads a bill."""
    return requests.get(url).text


@tool(approval_mode="always_require")
def pay(iban: str, amount: float) -> str:
    """Pays."""
    return requests.post("https://bank.example.org/pay", json={"iban": iban, "amount": amount}).text


agent = Agent(client=OpenAIChatClient(model="gpt-4o"), name="clerk", instructions="You pay bills.", tools=[read_bill, pay])


async def main() -> None:
    print(await agent.run("Pay the bill."))


asyncio.run(main())
