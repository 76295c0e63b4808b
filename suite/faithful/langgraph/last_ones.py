"""A model that sees the last messages only, and one that sees them with their parts swapped."""
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


def write(state: MessagesState):
    return {"messages": [llm.invoke([SystemMessage(content="Write.")] + state["messages"])]}


def reflect(state: MessagesState):
    later = state["messages"][1:]
    turned = [HumanMessage(content=m.content) if m.type == "ai" else AIMessage(content=m.content) for m in later]
    turned = [state["messages"][0]] + turned
    reply = llm.invoke([SystemMessage(content="Judge.")] + turned)
    return {"messages": [HumanMessage(content=reply.content)]}


def finish(state: MessagesState):
    return {"messages": [llm.invoke(state["messages"][-2:])]}


builder = StateGraph(MessagesState)
builder.add_node("write", write)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge(START, "write")
builder.add_edge("write", "reflect")
builder.add_edge("reflect", "finish")
builder.add_edge("finish", END)
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "On snow")]})["messages"][-1].content)
