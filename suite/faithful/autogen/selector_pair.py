"""A selector group chat of two with a prompt of its own."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
ann = AssistantAgent("ann", client, system_message="You are Ann.")
bob = AssistantAgent("bob", client, system_message="You are Bob.")
team = SelectorGroupChat(
    [ann, bob],
    client,
    termination_condition=MaxMessageTermination(4),
    selector_prompt="Who of {participants} goes on?\n{roles}\n---\n{history}",
)


async def main() -> None:
    print((await team.run(task="Talk")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
