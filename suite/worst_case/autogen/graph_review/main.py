"""A graph that fans out to two editors and joins them."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
writer = AssistantAgent("writer", model_client=client)
editor1 = AssistantAgent("editor1", model_client=client)
editor2 = AssistantAgent("editor2", model_client=client)
final = AssistantAgent("final_reviewer", model_client=client)
builder = DiGraphBuilder()
builder.add_node(writer).add_node(editor1).add_node(editor2).add_node(final)
builder.add_edge(writer, editor1)
builder.add_edge(writer, editor2)
builder.add_edge(editor1, final)
builder.add_edge(editor2, final)
flow = GraphFlow(participants=builder.get_participants(), graph=builder.build())
asyncio.run(flow.run(task="A paragraph about climate"))
