"""What a node computes: keys with defaults, comparisons, slices, joins, helpers of the project."""
import json
import operator
from dataclasses import dataclass, field
from typing import Annotated

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

llm = ChatOpenAI(model="m")
ASK = PromptTemplate.from_template("Ask something about {topic}, after {count} questions.") | llm | StrOutputParser()
ANSWER = ChatPromptTemplate.from_messages([("system", "You are {tone}."), ("user", "{question}")])


@dataclass
class State:
    topic: str
    tone: str = "kind"
    questions: Annotated[list, operator.add] = field(default_factory=list)
    answers: Annotated[list, operator.add] = field(default_factory=list)
    summary: str = ""


def clean(text):
    return text.strip().lower()


def ask(state: State):
    question = ASK.invoke({"topic": state.topic, "count": len(state.questions)})
    return {"questions": [clean(question)]}


def answer(state: State):
    tone = state.tone if len(state.questions) < 2 else "short"
    chain = ANSWER | llm
    reply = chain.invoke({"tone": tone, "question": state.questions[-1]})
    return {"answers": [reply.content]}


def route(state: State) -> str:
    match len(state.answers):
        case 1:
            return "ask"
        case _:
            return "sum"


def summarize(state: State):
    lines = [f"{i}" for i in ("first", "last")]
    text = "; ".join(state.answers[-2:])
    return {"summary": f"{' and '.join(lines)}: {text}"}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_node("answer", answer)
builder.add_node("sum", summarize)
builder.add_edge(START, "ask")
builder.add_edge("ask", "answer")
builder.add_conditional_edges("answer", route)
builder.add_edge("sum", END)
graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({"topic": "bees"})
    print(json.dumps({"topic": result["topic"], "tone": "kind", "questions": result["questions"], "answers": result["answers"], "summary": result["summary"]}))
