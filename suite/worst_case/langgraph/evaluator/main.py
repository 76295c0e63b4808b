"""A joke that is written until it is funny, at most so many steps."""
from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph as Graph
from pydantic import BaseModel


class Feedback(BaseModel):
    grade: Literal["funny", "not funny"]
    feedback: str


class State(TypedDict):
    joke: str
    topic: str
    feedback: str
    grade: str


llm = ChatOpenAI(model="gpt-4o-mini")
judge = llm.with_structured_output(Feedback)


def generate(state: State):
    if state.get("feedback"):
        return {"joke": llm.invoke(f"Write a joke about {state['topic']}: {state['feedback']}").content}
    return {"joke": llm.invoke(f"Write a joke about {state['topic']}").content}


def evaluate(state: State):
    grade = judge.invoke(f"Grade the joke {state['joke']}")
    return {"grade": grade.grade, "feedback": grade.feedback}


builder = Graph(State)
builder.add_node("generate", generate)
builder.add_node("evaluate", evaluate)
builder.add_edge(START, "generate")
builder.add_edge("generate", "evaluate")
builder.add_conditional_edges("evaluate", lambda s: END if s["grade"] == "funny" else "generate")
app = builder.compile()
app.invoke({"topic": "cats"}, config={"recursion_limit": 10})
