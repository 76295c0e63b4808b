"""Two models that share one conversation."""
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

first = ChatOpenAI(model="m")
second = ChatOpenAI(model="m2")


def open_(state: MessagesState):
    return {"messages": [first.invoke(state["messages"]), HumanMessage("And the other side?")]}


def close(state: MessagesState):
    reply = second.invoke(state["messages"])
    return {"messages": [AIMessage(content=f"In short: {reply.content}")]}


graph = StateGraph(MessagesState)
graph.add_node("open", open_)
graph.add_node("close", close)
graph.set_entry_point("open")
graph.add_edge("open", "close")
graph.set_finish_point("close")
app = graph.compile()

if __name__ == "__main__":
    print(app.invoke({"messages": [("user", "Is it good?")]})["messages"][-1].content)
