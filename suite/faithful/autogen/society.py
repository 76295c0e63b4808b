"""A SocietyOfMind agent: a team inside an agent."""
import asyncio

from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
ann = AssistantAgent("ann", client, system_message="You are Ann.")
bob = AssistantAgent("bob", client, system_message="You are Bob.")
inner = RoundRobinGroupChat([ann, bob], termination_condition=MaxMessageTermination(3))
society = SocietyOfMindAgent("society", team=inner, model_client=client)


async def main() -> None:
    print((await society.run(task="A joke")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
