"""An evaluator and a generator that go round until the joke is funny."""
from typing import Literal

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

llm = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    joke: str
    topic: str
    feedback: str
    funny_or_not: str


class Feedback(BaseModel):
    grade: Literal["funny", "not funny"]
    feedback: str


evaluator = llm.with_structured_output(Feedback)


def generator(state: State):
    if state.get("feedback"):
        msg = llm.invoke(f"Write a joke about {state['topic']} with {state['feedback']}")
    else:
        msg = llm.invoke(f"Write a joke about {state['topic']}")
    return {"joke": msg.content}


def grader(state: State):
    grade = evaluator.invoke(f"Grade the joke {state['joke']}")
    return {"funny_or_not": grade.grade, "feedback": grade.feedback}


def route(state: State):
    if state["funny_or_not"] == "funny":
        return "Accepted"
    elif state["funny_or_not"] == "not funny":
        return "Rejected + Feedback"


g = StateGraph(State)
g.add_node("generator", generator)
g.add_node("grader", grader)
g.add_edge(START, "generator")
g.add_edge("generator", "grader")
g.add_conditional_edges("grader", route, {"Accepted": END, "Rejected + Feedback": "generator"})
workflow = g.compile()
state = workflow.invoke({"topic": "Cats"}, config={"recursion_limit": 12})
