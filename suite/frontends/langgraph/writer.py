"""A writer and a critic in turn, made by a function; the number of rounds is counted."""
from typing import Annotated, TypedDict

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langgraph.graph import END, StateGraph, add_messages

WRITE = ChatPromptTemplate.from_messages(
    [("system", "You write essays."), MessagesPlaceholder(variable_name="messages")]
)
CRITIC = ChatPromptTemplate.from_messages(
    [("system", "You are a teacher. Criticize."), MessagesPlaceholder(variable_name="messages")]
)


class State(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]


def make_writer(rounds: int = 3):
    model = ChatAnthropic(model_name="claude-sonnet-4-5", max_tokens=2000)
    write = WRITE | model
    critic = CRITIC | model

    async def generation(state: State) -> State:
        return {"messages": [await write.ainvoke(state["messages"])]}

    async def reflection(state: State) -> State:
        res = await critic.ainvoke({"messages": state["messages"]})
        return {"messages": [HumanMessage(content=res.content)]}

    def should_continue(state: State):
        if len(state["messages"]) > rounds * 2:
            return END
        return "reflect"

    builder = StateGraph(State)
    builder.add_node("generate", generation)
    builder.add_node("reflect", reflection)
    builder.set_entry_point("generate")
    builder.add_conditional_edges("generate", should_continue)
    builder.add_edge("reflect", "generate")
    return builder.compile().with_config(recursion_limit=12)
