"""The retry policy of the framework as it is by default; the node asks twice."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph
from langgraph.types import RetryPolicy

llm = ChatOpenAI(model="gpt-4o-mini", max_retries=0)


class State(TypedDict):
    text: str


def work(state: State):
    plan = llm.invoke("Plan: " + state["text"])
    return {"text": llm.invoke("Do: " + plan.content).content}


builder = StateGraph(State)
builder.add_node(work, retry_policy=RetryPolicy(initial_interval=0.01, backoff_factor=1.0))
builder.set_entry_point("work")
builder.set_finish_point("work")
app = builder.compile()
print(app.invoke({"text": "tidy up"}))
