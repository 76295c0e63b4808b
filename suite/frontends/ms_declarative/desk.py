"""Agents with tools, one after the other, handing over, and in a graph."""
import asyncio
import os
from typing import Annotated

from agent_framework import Agent, AgentExecutor, Executor, WorkflowBuilder, handler, tool
from agent_framework.openai import OpenAIChatClient
from agent_framework.orchestrations import HandoffBuilder, SequentialBuilder


@tool(approval_mode="always_require")
def pay_back(order: Annotated[int, "The order"]) -> str:
    """Pays an order back."""
    return f"order {order} is paid back"


def find(order: int) -> str:
    """Looks an order up."""
    return f"order {order}"


class Upper(Executor):
    @handler
    async def run(self, text: str, ctx) -> None:
        await ctx.send_message(text.upper())


client = OpenAIChatClient(model=os.getenv("DESK_MODEL", "gpt-4o"))
front = Agent(client=client, name="front", instructions="You meet people.", tools=find, default_options={"temperature": 0.2})
money = client.as_agent(name="money", instructions="You pay back.", tools=[pay_back, front.as_tool(name="ask_front", arg_name="question")])
writer = Agent(client, "You write.", name="writer")

row = SequentialBuilder(participants=[writer, money]).build()
desk = HandoffBuilder(name="desk", participants=[front, money, writer]).add_handoff(front, [money]).add_handoff(money, [front]).with_start_agent(front).build()

upper = Upper(id="upper")
graph = (
    WorkflowBuilder(start_executor=front)
    .add_edge(front, upper, condition=lambda m: m.ok)
    .add_edge(front, AgentExecutor(writer, id="again"), condition=lambda m: not m.ok)
    .add_edge(upper, money)
    .build()
)


async def main() -> None:
    print(await graph.run("Where is order 7?"))


asyncio.run(main())
