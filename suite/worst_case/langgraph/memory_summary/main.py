"""A chatbot that summarizes after some messages."""
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

model = ChatOpenAI(model="gpt-4o-mini")


class State(MessagesState):
    summary: str


def call_model(state: State):
    return {"messages": [model.invoke(state["messages"])]}


def summarize(state: State):
    reply = model.invoke(state["messages"] + [HumanMessage("Summarize the conversation.")])
    return {"summary": reply.content, "messages": [RemoveMessage(id=m.id) for m in state["messages"][:-2]]}


def should_continue(state: State):
    return "summarize" if len(state["messages"]) > 2 else END


workflow = StateGraph(State)
workflow.add_node("conversation", call_model)
workflow.add_node(summarize)
workflow.add_edge(START, "conversation")
workflow.add_conditional_edges("conversation", should_continue)
workflow.add_edge("summarize", END)
app = workflow.compile(checkpointer=MemorySaver())
config = {"configurable": {"thread_id": "4"}}
for text in ("hi", "I am Ann", "who am I?"):
    app.invoke({"messages": [HumanMessage(text)]}, config)
