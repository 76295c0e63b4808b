"""Generation and reflection, six messages long."""
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")
writer = ChatPromptTemplate.from_messages([("system", "Write an essay."), MessagesPlaceholder("messages")]) | llm
teacher = ChatPromptTemplate.from_messages([("system", "Grade the essay."), MessagesPlaceholder("messages")]) | llm


def generate(state: MessagesState):
    return {"messages": [writer.invoke(state["messages"])]}


def reflect(state: MessagesState):
    res = teacher.invoke(state["messages"])
    return {"messages": [HumanMessage(content=res.content)]}


def should_continue(state: MessagesState):
    if len(state["messages"]) > 6:
        return END
    return "reflect"


builder = StateGraph(MessagesState)
builder.add_node("generate", generate)
builder.add_node("reflect", reflect)
builder.add_edge(START, "generate")
builder.add_conditional_edges("generate", should_continue)
builder.add_edge("reflect", "generate")
graph = builder.compile()
print(graph.invoke({"messages": [HumanMessage("An essay on bees")]}))
