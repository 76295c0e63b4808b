"""A graph with a loop that a word ends, and a limit of messages."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
writer = AssistantAgent("writer", client)
reviewer = AssistantAgent("reviewer", client)
done = AssistantAgent("done", client)
builder = DiGraphBuilder().add_node(writer).add_node(reviewer).add_node(done)
builder.add_edge(writer, reviewer)
builder.add_edge(reviewer, writer, condition=lambda m: "APPROVE" not in m.to_model_text())
builder.add_edge(reviewer, done, condition=lambda m: "APPROVE" in m.to_model_text())
builder.set_entry_point(writer)
flow = GraphFlow(builder.get_participants(), graph=builder.build(), termination_condition=MaxMessageTermination(8))
print(asyncio.run(flow.run(task="A poem")).stop_reason)
