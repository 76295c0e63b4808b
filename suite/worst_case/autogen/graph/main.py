"""A writer and two editors at the same time, then a last one."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
writer, grammar, style, final = (AssistantAgent(n, client) for n in ("writer", "grammar", "style", "final"))
builder = DiGraphBuilder()
for node in (writer, grammar, style, final):
    builder.add_node(node)
builder.add_edge(writer, grammar).add_edge(writer, style)
builder.add_edge(grammar, final).add_edge(style, final)
flow = GraphFlow(participants=builder.get_participants(), graph=builder.build())
print(asyncio.run(flow.run(task="A paragraph on bees")).stop_reason)
