"""A node with nested conditions."""
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


def prepare(state: MessagesState):
    said = []
    text = state["messages"][-1].content
    if "bees" in text:
        said.append(AIMessage(content="I know bees."))
    else:
        said.append(AIMessage(content="I know little."))
    if len(text) > 100:
        said.append(HumanMessage(content="Be brief."))
    if text.endswith("?"):
        said.append(HumanMessage(content="Answer now."))
    return {"messages": said}


def answer(state: MessagesState):
    return {"messages": [llm.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("prepare", prepare)
builder.add_node("answer", answer)
builder.add_edge(START, "prepare")
builder.add_edge("prepare", "answer")
builder.add_edge("answer", END)
graph = builder.compile()

if __name__ == "__main__":
    print(graph.invoke({"messages": [("user", "Do bees hum?")]})["messages"][-1].content)
