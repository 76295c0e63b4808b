"""An agent as a node, before a node that sums up."""
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


@tool
def look(place: str) -> str:
    """Looks at a place."""
    return "a tree"


scout = create_agent(llm, [look], system_prompt="Scout.")


def sum_up(state: MessagesState):
    return {"messages": [llm.invoke(state["messages"] + [("user", "Sum it up.")])]}


builder = StateGraph(MessagesState)
builder.add_node("scout", scout)
builder.add_node("sum_up", sum_up)
builder.add_edge(START, "scout")
builder.add_edge("scout", "sum_up")
builder.add_edge("sum_up", END)
graph = builder.compile()
graph.invoke({"messages": [("user", "What is there?")]}, {"recursion_limit": 9})
