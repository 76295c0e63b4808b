"""A structured answer."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


agent = AssistantAgent(
    "reader", OpenAIChatCompletionClient(model="gpt-4o"), system_message="Read it.", output_content_type=Person
)


async def main() -> None:
    print((await agent.run(task="Ann is 7")).messages[-1].content.model_dump_json())


if __name__ == "__main__":
    asyncio.run(main())
