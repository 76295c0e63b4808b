"""One assistant without tools."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

agent = AssistantAgent("poet", OpenAIChatCompletionClient(model="gpt-4o", temperature=0.5), system_message="Answer in one line.")


async def main() -> None:
    result = await agent.run(task="Write about bees")
    print(result.messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
