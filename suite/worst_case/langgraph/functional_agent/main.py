"""A tool-calling agent with the functional API."""
from langchain.tools import tool
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolCall
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task
from langgraph.graph import add_messages

llm = ChatOpenAI(model="gpt-4o-mini")


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies."""
    return a * b


tools = [multiply]
by_name = {t.name: t for t in tools}
with_tools = llm.bind_tools(tools)


@task
def call_llm(messages: list[BaseMessage]):
    return with_tools.invoke([SystemMessage("You do arithmetic.")] + messages)


@task
def call_tool(tool_call: ToolCall):
    return by_name[tool_call["name"]].invoke(tool_call)


@entrypoint()
def agent(messages: list[BaseMessage]):
    response = call_llm(messages).result()
    while True:
        if not response.tool_calls:
            break
        futures = [call_tool(c) for c in response.tool_calls]
        results = [f.result() for f in futures]
        messages = add_messages(messages, [response, *results])
        response = call_llm(messages).result()
    return add_messages(messages, response)


for chunk in agent.stream([HumanMessage("3 * 4")], stream_mode="updates"):
    print(chunk)
