"""Incident response as a graph around an agent of LangChain."""

from typing import TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel
from world import call

REMEDIES = ["restart", "roll_back", "scale_up"]
model = ChatOpenAI(model="gpt-5-mini")


class Cause(BaseModel):
    finding: str
    remedy: str
    certain: bool


@tool
def logs(service: str, lines: int) -> list[str]:
    """The last lines of the log of a service."""
    return call("logs", service=service, lines=lines)


@tool
def numbers(service: str) -> dict:
    """Errors a minute and the load of a service."""
    return call("numbers", service=service)


on_call = create_agent(
    model,
    tools=[logs, numbers],
    system_prompt="You find out what is wrong with a service.",
    response_format=Cause,
    middleware=[ModelCallLimitMiddleware(run_limit=6)],
)


class State(TypedDict, total=False):
    service: str
    alert: str
    cause: Cause
    done: str
    report: dict


def investigate(state: State) -> State:
    task = f"{state['alert']} at {state['service']}. What is wrong?"
    question = f"{task} `remedy` is restart, roll_back or scale_up."
    try:
        reply = on_call.invoke({"messages": [("user", question)]})
        return {"cause": reply["structured_response"]}
    except Exception as why:
        return {"cause": Cause(finding=str(why), remedy="none", certain=False)}


def route(state: State) -> str:
    cause = state["cause"]
    return "carry_out" if cause.certain and cause.remedy in REMEDIES else "page_person"


def carry_out(state: State) -> State:
    remedy = state["cause"].remedy
    call("carry_out", service=state["service"], remedy=remedy)
    return {"done": remedy}


def page_person(state: State) -> State:
    call("page_person", service=state["service"], text=state["cause"].finding)
    return {"done": "a person was called"}


def report(state: State) -> State:
    service, done = state["service"], state["done"]
    seen = call("numbers", service=service)
    try:
        text = model.invoke([
            ("system", "You write reports of incidents in one sentence."),
            ("user", f"Report: {service}, {state['cause'].finding}, {done}."),
        ]).content
    except Exception:
        text = f"{service}: {done}"
    healthy = seen["errors"] < 5 and seen["load"] < 0.9
    return {"report": {"service": service, "done": done, "healthy": healthy, "text": text}}


graph = StateGraph(State)
for node in (investigate, carry_out, page_person, report):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "investigate")
graph.add_conditional_edges("investigate", route, ["carry_out", "page_person"])
graph.add_edge("carry_out", "report")
graph.add_edge("page_person", "report")
graph.add_edge("report", END)
app = graph.compile()


def main(service: str, alert: str) -> dict:
    return app.invoke({"service": service, "alert": alert})["report"]
