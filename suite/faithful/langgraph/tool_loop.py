"""A tool loop of prebuilt parts."""
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def double(n: int) -> int:
    """Doubles."""
    return 2 * n


tools = [add, double]
model = ChatOpenAI(model="m", temperature=0).bind_tools(tools)


def assistant(state: MessagesState):
    return {"messages": [model.invoke([SystemMessage(content="You compute.")] + state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("assistant", assistant)
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "assistant")
builder.add_conditional_edges("assistant", tools_condition)
builder.add_edge("tools", "assistant")
graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({"messages": [HumanMessage("Twice the sum of 2 and 3?")]})
    print(result["messages"][-1].content)
