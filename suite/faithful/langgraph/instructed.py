"""Instructions that are put before the conversation where it has none."""
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def height(mountain: str) -> str:
    """The height of a mountain."""
    return f"{mountain}: 4478 m"


llm = ChatOpenAI(model="gpt-4o-mini", temperature=0).bind_tools([height])
INSTRUCTIONS = SystemMessage(content="You know mountains.")


def assistant(state: MessagesState):
    messages = state["messages"]
    if not any(isinstance(m, SystemMessage) for m in messages):
        messages = [INSTRUCTIONS] + messages
    return {"messages": [llm.invoke(messages)]}


builder = StateGraph(MessagesState)
builder.add_node("assistant", assistant)
builder.add_node("tools", ToolNode([height]))
builder.add_edge(START, "assistant")
builder.add_conditional_edges("assistant", tools_condition)
builder.add_edge("tools", "assistant")
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "How high is it?")]})["messages"][-1].content)
