"""A GraphFlow without branches."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
draft = AssistantAgent("draft", client, system_message="Draft.")
check = AssistantAgent("check", client, system_message="Check.")
print_ = AssistantAgent("print", client, system_message="Print.")

builder = DiGraphBuilder()
builder.add_node(draft).add_node(check).add_node(print_)
builder.add_edge(draft, check).add_edge(check, print_)
flow = GraphFlow(participants=builder.get_participants(), graph=builder.build())


async def main() -> None:
    print((await flow.run(task="A poem")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
