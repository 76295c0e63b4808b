"""What the runtime hands in: a context with defaults; a model's name that a helper takes apart; calls in a conversation."""
from dataclasses import dataclass, field

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime

PROMPT = "You answer about {place}."


@dataclass(kw_only=True)
class Context:
    prompt: str = field(default=PROMPT, metadata={"description": "What it is told."})
    model: str = field(default="openai/m")
    place: str = "Ghent"


def load(name: str) -> ChatOpenAI:
    provider, model = name.split("/", maxsplit=1)
    return ChatOpenAI(model=model)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


TOOLS = [weather]


async def think(state: MessagesState, runtime: Runtime[Context]):
    llm = load(runtime.context.model).bind_tools(TOOLS)
    system = SystemMessage(content=runtime.context.prompt.format(place=runtime.context.place))
    return {"messages": [await llm.ainvoke([system, *state["messages"]])]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node(think)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge(START, "think")
builder.add_conditional_edges("think", tools_condition)
builder.add_edge("tools", "think")
graph = builder.compile()

if __name__ == "__main__":
    import asyncio

    done = asyncio.run(graph.ainvoke({"messages": [("user", "Rain?")]}, context=Context()))
    print(done["messages"][-1].content)
