"""The result of a tool is the answer, in the summary format of the agent."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def weather(city: str) -> str:
    """Says what the weather is like."""
    return f"It rains in {city}."


agent = AssistantAgent(
    name="guide",
    model_client=OpenAIChatCompletionClient(model="gpt-4o"),
    tools=[weather],
    system_message="Look it up.",
    tool_call_summary_format="{tool_name} says: {result}",
)


async def main() -> None:
    print((await agent.run(task="Do I need a coat in Bonn?")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
