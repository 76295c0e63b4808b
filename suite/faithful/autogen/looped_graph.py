"""A GraphFlow with a cycle whose edges test the last message."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
writer = AssistantAgent("writer", model_client=client, system_message="Write.")
reviewer = AssistantAgent("reviewer", model_client=client, system_message="Say APPROVE or what is wrong.")
editor = AssistantAgent("editor", model_client=client, system_message="Polish.")

builder = DiGraphBuilder()
builder.add_node(writer).add_node(reviewer).add_node(editor)
builder.add_edge(writer, reviewer)
builder.add_edge(reviewer, editor, condition=lambda msg: "APPROVE" in msg.to_model_text())
builder.add_edge(reviewer, writer, condition=lambda msg: "APPROVE" not in msg.to_model_text())
builder.set_entry_point(writer)
team = GraphFlow(builder.get_participants(), graph=builder.build(), termination_condition=MaxMessageTermination(20))


async def main() -> None:
    result = await team.run(task="On bees")
    print(result.messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
