"""Graphs: one in a row, and one with conditions and a way back."""
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

model = OpenAIChatCompletionClient(model="gpt-4o")
a, b, c, d = [AssistantAgent(n, model_client=model, system_message=f"You are {n}.") for n in ["a", "b", "c", "d"]]

row = DiGraphBuilder()
row.add_node(a).add_node(b).add_node(c)
row.add_edge(a, b).add_edge(a, c)
first = GraphFlow(row.get_participants(), graph=row.build())

ring = DiGraphBuilder()
for node in (b, c, d):
    ring.add_node(node)
ring.add_edge(b, c)
ring.add_edge(c, d, condition="GOOD")
ring.add_edge(c, b, condition="AGAIN", activation_group="back")
ring.add_edge(d, b, condition=lambda m: "no" in m.to_model_text(), activation_group="back", activation_condition="any")
ring.add_edge(d, c, condition=lambda m: len(m.content) > 400, activation_group="long")
ring.set_entry_point(b)
second = GraphFlow(participants=[b, c, d], graph=ring.build(), termination_condition=MaxMessageTermination(12))
