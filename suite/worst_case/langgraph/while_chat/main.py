"""A conversation in a terminal; the user is a script here."""
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")
lines = ["hello", "why?", "and?", "q"]


def chatbot(state: MessagesState):
    return {"messages": [llm.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("chatbot", chatbot)
builder.add_edge(START, "chatbot")
graph = builder.compile(checkpointer=InMemorySaver())


def stream(text: str):
    config = {"configurable": {"thread_id": "1"}}
    for event in graph.stream({"messages": [{"role": "user", "content": text}]}, config):
        for value in event.values():
            print(value["messages"][-1].content)


while True:
    line = lines.pop(0)
    if line in ("quit", "q"):
        break
    stream(line)
