"""A GraphFlow whose node is an agent with a group chat inside."""
import asyncio

from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
planner = AssistantAgent("planner", client, system_message="Plan.")
critic = AssistantAgent("critic", client, system_message="Criticize.")
editor = AssistantAgent("editor", client, system_message="Edit.")
board = SocietyOfMindAgent("board", team=RoundRobinGroupChat([critic, editor], max_turns=2), model_client=client)
printer = AssistantAgent("printer", client, system_message="Print.")
builder = DiGraphBuilder()
builder.add_node(planner).add_node(board).add_node(printer)
builder.add_edge(planner, board).add_edge(board, printer)
team = GraphFlow([planner, board, printer], graph=builder.build())


async def main() -> None:
    said = [m for m in (await team.run(task="A poem")).messages if m.source == "printer"]
    print(said[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
