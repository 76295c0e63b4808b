"""A graph that a class builds, with settings of a dataclass and nodes that are methods."""
import os
from dataclasses import dataclass, field
from typing import List, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph


@dataclass
class Settings:
    model: str = field(default_factory=lambda: os.getenv("REPORT_MODEL", "m"))
    tone: str = "dry"


class State(TypedDict):
    topic: str
    notes: List[str]
    report: str


class Reporter:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.llm = ChatOpenAI(model=settings.model)
        self.graph = self._build()

    def _collect(self, state: State) -> dict:
        reply = self.llm.invoke([SystemMessage(content="Take notes."), HumanMessage(content=state["topic"])])
        return {"notes": [reply.content]}

    def _write(self, state: State) -> State:
        prompt = f"Write a {self.settings.tone} report.\nNotes: {state['notes'][0]}"
        return {**state, "report": self.llm.invoke(prompt).content}

    def _build(self):
        builder = StateGraph(State)
        builder.add_node("collect", self._collect)
        builder.add_node("write", self._write)
        builder.add_edge(START, "collect")
        builder.add_edge("collect", "write")
        builder.add_edge("write", END)
        return builder.compile()

    def run(self, topic: str) -> str:
        return self.graph.invoke({"topic": topic})["report"]


reporter = Reporter(Settings())
graph = reporter.graph

if __name__ == "__main__":
    import json

    print(json.dumps(graph.invoke({"topic": "Bees"})))
