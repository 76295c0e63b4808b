"""A conversation of which a summary is kept: what is older is taken out."""
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class State(MessagesState):
    summary: str


def talk(state: State):
    summary = state.get("summary", "")
    if summary:
        messages = [SystemMessage(content=f"So far: {summary}")] + state["messages"]
    else:
        messages = state["messages"]
    return {"messages": [llm.invoke(messages)]}


def summarize(state: State):
    messages = state["messages"] + [HumanMessage(content="Sum this up.")]
    reply = llm.invoke(messages)
    return {"summary": reply.content, "messages": [RemoveMessage(id=m.id) for m in state["messages"][:-2]]}


def enough(state: State):
    return "summarize" if len(state["messages"]) > 1 else END


builder = StateGraph(State)
builder.add_node("talk", talk)
builder.add_node("summarize", summarize)
builder.add_edge(START, "talk")
builder.add_conditional_edges("talk", enough, ["summarize", END])
builder.add_edge("summarize", END)
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "Hello")]})["messages"][-1].content)
