"""A GraphFlow with conditions and a cycle."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
write = AssistantAgent("write", client, system_message="Write.")
judge = AssistantAgent("judge", client, system_message="Say GOOD or AGAIN.")
send = AssistantAgent("send", client, system_message="Send.")

builder = DiGraphBuilder()
builder.add_node(write).add_node(judge).add_node(send)
builder.add_edge(write, judge)
builder.add_conditional_edges(judge, {"GOOD": send, "AGAIN": write})
builder.set_entry_point(write)
flow = GraphFlow([write, judge, send], graph=builder.build(), termination_condition=MaxMessageTermination(20))


async def main() -> None:
    print((await flow.run(task="A letter")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
