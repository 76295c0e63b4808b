"""Agents that hand over to each other with Command, in a graph."""
from typing import Annotated

from langchain.agents import create_agent
from langchain.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command


def create_handoff_tool(*, agent_name: str, description: str | None = None):
    @tool(f"transfer_to_{agent_name}", description=description or f"Ask {agent_name} for help.")
    def handoff_tool(
        state: Annotated[MessagesState, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command:
        message = {"role": "tool", "content": "Transferred", "name": agent_name, "tool_call_id": tool_call_id}
        return Command(
            goto=agent_name, update={**state, "messages": state["messages"] + [message]}, graph=Command.PARENT
        )

    return handoff_tool


flights = create_agent(
    "openai:gpt-4o-mini", tools=[create_handoff_tool(agent_name="hotels")], system_prompt="Flights.", name="flights"
)
hotels = create_agent(
    "openai:gpt-4o-mini", tools=[create_handoff_tool(agent_name="flights")], system_prompt="Hotels.", name="hotels"
)
graph = StateGraph(MessagesState).add_node(flights).add_node(hotels).add_edge(START, "flights").compile()
for chunk in graph.stream({"messages": [{"role": "user", "content": "To Rome"}]}, {"recursion_limit": 6}, subgraphs=True):
    print(chunk)
