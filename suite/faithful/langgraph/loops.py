"""A cycle with counters in the state and a `Command` that ends it."""
import json
from typing import Literal, TypedDict

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

llm = ChatOpenAI(model="m")
MOST = 3


class Grade(BaseModel):
    good: bool
    advice: str


class State(TypedDict):
    topic: str
    draft: str
    advice: str
    rounds: int


writer = (
    ChatPromptTemplate.from_messages([("system", "You write."), ("human", "About {topic}. Advice: {advice}")])
    | llm
    | StrOutputParser()
)


def write(state: State):
    draft = writer.invoke({"topic": state["topic"], "advice": state.get("advice") or "none"})
    return {"draft": draft, "rounds": state.get("rounds", 0) + 1}


def judge(state: State) -> Command[Literal["write", "__end__"]]:
    grade = llm.with_structured_output(Grade).invoke(f"Judge: {state['draft']}")
    if grade.good or state["rounds"] >= MOST:
        return Command(goto=END)
    return Command(update={"advice": grade.advice}, goto="write")


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("judge", judge)
builder.add_edge(START, "write")
builder.add_edge("write", "judge")
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"topic": "bees"})))
