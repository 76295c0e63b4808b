"""A loop in a graph with an exit condition and a limit of messages."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
generator = AssistantAgent("generator", model_client=client)
reviewer = AssistantAgent("reviewer", model_client=client)
summary = AssistantAgent("summary", model_client=client)
builder = DiGraphBuilder()
builder.add_node(generator).add_node(reviewer).add_node(summary)
builder.add_edge(generator, reviewer)
builder.add_edge(reviewer, summary, condition=lambda msg: "APPROVE" in msg.to_model_text())
builder.add_edge(reviewer, generator, condition=lambda msg: "APPROVE" not in msg.to_model_text())
builder.set_entry_point(generator)
flow = GraphFlow(
    participants=builder.get_participants(), graph=builder.build(), termination_condition=MaxMessageTermination(9)
)
asyncio.run(flow.run(task="Brainstorm"))
