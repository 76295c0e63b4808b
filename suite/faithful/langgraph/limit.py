"""A recursion limit that is reached."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def poke(n: int) -> str:
    """Pokes."""
    return "nothing happens"


llm = ChatOpenAI(model="m").bind_tools([poke])


def child(state: MessagesState):
    return {"messages": [llm.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("child", child)
builder.add_node("tools", ToolNode([poke]))
builder.add_edge(START, "child")
builder.add_conditional_edges("child", tools_condition)
builder.add_edge("tools", "child")
graph = builder.compile()

if __name__ == "__main__":
    try:
        print(graph.invoke({"messages": [("user", "Go on")]}, {"recursion_limit": 5})["messages"][-1].content)
    except GraphRecursionError as e:
        print(e)
