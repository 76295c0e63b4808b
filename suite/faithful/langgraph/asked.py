"""A node that runs an agent in its own conversation."""
import json
from typing import TypedDict

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent

llm = ChatOpenAI(model="m")


@tool
def search(query: str) -> str:
    """Looks something up."""
    return f"found: {query}"


researcher = create_react_agent(llm, [search], prompt="Research.", name="researcher")


class State(TypedDict):
    topic: str
    facts: str
    report: str


def research(state: State):
    result = researcher.invoke({"messages": [{"role": "user", "content": f"Facts about {state['topic']}"}]})
    return {"facts": result["messages"][-1].content}


def report(state: State):
    return {"report": llm.invoke(f"Report: {state['facts']}").content}


builder = StateGraph(State)
builder.add_sequence([research, report])
builder.add_edge(START, "research")
builder.add_edge("report", END)
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"topic": "ants"})))
