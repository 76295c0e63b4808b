"""An orchestrator that gives sections to workers; the planner's list has no limit."""
import operator
from typing import Annotated

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

llm = ChatOpenAI(model="gpt-4o-mini")


class Section(BaseModel):
    name: str = Field(description="Name for this section of the report.")
    description: str = Field(description="Brief overview.")


class Sections(BaseModel):
    sections: list[Section] = Field(description="Sections of the report.")


planner = llm.with_structured_output(Sections)


class State(TypedDict):
    topic: str
    sections: list[Section]
    completed_sections: Annotated[list, operator.add]
    final_report: str


class WorkerState(TypedDict):
    section: Section
    completed_sections: Annotated[list, operator.add]


def orchestrator(state: State):
    return {"sections": planner.invoke(f"Plan a report about {state['topic']}").sections}


def llm_call(state: WorkerState):
    section = llm.invoke(f"Write {state['section'].name}: {state['section'].description}")
    return {"completed_sections": [section.content]}


def synthesizer(state: State):
    return {"final_report": "\n---\n".join(state["completed_sections"])}


def assign_workers(state: State):
    return [Send("llm_call", {"section": s}) for s in state["sections"]]


b = StateGraph(State)
b.add_node("orchestrator", orchestrator)
b.add_node("llm_call", llm_call)
b.add_node("synthesizer", synthesizer)
b.add_edge(START, "orchestrator")
b.add_conditional_edges("orchestrator", assign_workers, ["llm_call"])
b.add_edge("llm_call", "synthesizer")
b.add_edge("synthesizer", END)
orchestrator_worker = b.compile()
print(orchestrator_worker.invoke({"topic": "LLM scaling laws"})["final_report"])
