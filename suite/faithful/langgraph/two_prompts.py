"""Two models with instructions of their own see one conversation."""
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

llm = ChatOpenAI(model="m")


def pro(state: MessagesState):
    return {"messages": [llm.invoke([SystemMessage("Argue for it."), *state["messages"]])]}


def contra(state: MessagesState):
    return {"messages": [llm.invoke([("system", "Argue against it.")] + state["messages"])]}


def turn(state: MessagesState):
    if len(state["messages"]) > 4:
        return END
    return "pro"


builder = StateGraph(MessagesState)
builder.add_node("pro", pro)
builder.add_node("contra", contra)
builder.add_edge(START, "pro")
builder.add_edge("pro", "contra")
builder.add_conditional_edges("contra", turn)
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "Tea?")]})["messages"][-1].content)
