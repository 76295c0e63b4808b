"""A round-robin group chat with a tool, a streaming agent and a termination word."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.ui import Console
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def weather(city: str) -> str:
    """The weather."""
    return f"{city}: rain"


def build(client):
    planner = AssistantAgent(
        name="planner",
        model_client=client,
        tools=[weather],
        reflect_on_tool_use=True,
        description="Plans.",
        system_message="Plan a day. Reply with TERMINATE when all is said.",
    )
    critic = AssistantAgent(name="critic", model_client=client, description="Criticizes.", system_message="Criticize.")
    ends = TextMentionTermination("TERMINATE") | MaxMessageTermination(max_messages=10)
    return RoundRobinGroupChat([planner, critic], termination_condition=ends)


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o", temperature=0.5)
    result = await build(client).run(task="A day in Oslo")
    print(result.messages[-1].content)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
