"""A tool loop with its own state, router and tool node."""
from typing import Annotated, Literal, TypedDict

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages


class State(TypedDict):
    messages: Annotated[list, add_messages]


@tool
def stock(item: str) -> str:
    """Says how many there are."""
    return f"{item}: 4 left"


tools = [stock]
by_name = {t.name: t for t in tools}
llm = ChatOpenAI(model="m")
llm_with_tools = llm.bind_tools(tools)
PROMPT = "You keep the stock."


def call_model(state: State):
    messages = [{"role": "system", "content": PROMPT}] + state["messages"]
    response = llm_with_tools.invoke(messages)
    return {"messages": response}


def tool_node(state: State):
    result = []
    for call in state["messages"][-1].tool_calls:
        found = by_name[call["name"]]
        observation = found.invoke(call["args"])
        result.append(ToolMessage(content=observation, tool_call_id=call["id"]))
    return {"messages": result}


def should_continue(state: State) -> Literal["act", "__end__"]:
    last = state["messages"][-1]
    if last.tool_calls:
        return "act"
    return END


workflow = StateGraph(State)
workflow.add_node("think", call_model)
workflow.add_node("act", tool_node)
workflow.add_edge(START, "think")
workflow.add_conditional_edges("think", should_continue, {"act": "act", END: END})
workflow.add_edge("act", "think")
app = workflow.compile()

if __name__ == "__main__":
    print(app.invoke({"messages": [("user", "How many pears?")]}, {"recursion_limit": 10})["messages"][-1].content)
