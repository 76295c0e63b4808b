"""A graph with a model and its tools, and a limit of steps."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def search(query: str) -> str:
    """Searches the web."""
    return "nothing found"


llm = ChatOpenAI(model="gpt-4o-mini").bind_tools([search], parallel_tool_calls=False)


def chatbot(state: MessagesState):
    return {"messages": [llm.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("chatbot", chatbot)
builder.add_node("tools", ToolNode([search]))
builder.add_edge(START, "chatbot")
builder.add_conditional_edges("chatbot", tools_condition)
builder.add_edge("tools", "chatbot")
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "Find it")]}, {"recursion_limit": 9}))
