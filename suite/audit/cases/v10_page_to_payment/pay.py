"""Reads bills on the web and pays them."""
import asyncio

import httpx
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

BANK = "https://bank.example.org/transfers"


async def read_bill(url: str) -> str:
    """Reads a bill."""
    async with httpx.AsyncClient() as client:
        response = await client.get(url)
        return response.text


async def transfer(iban: str, amount: float) -> str:
    """Transfers money."""
    async with httpx.AsyncClient() as client:
        response = await client.post(BANK, json={"iban": iban, "amount": amount})
        return response.text


async def main() -> None:
    clerk = AssistantAgent(
        "clerk",
        model_client=OpenAIChatCompletionClient(model="gpt-4o"),
        system_message="You pay bills.",
        tools=[read_bill, transfer],
        max_tool_iterations=8,
    )
    print(await clerk.run(task="Pay the bill at https://shop.example.org/bill/7."))


asyncio.run(main())
