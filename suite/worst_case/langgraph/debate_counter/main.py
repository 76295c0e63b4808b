"""Two speakers; a counter in the state ends the debate."""
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, StateGraph

llm = ChatOpenAI(model="gpt-4o-mini")


class Debate(TypedDict):
    history: str
    count: int


def bull(state: Debate) -> dict:
    said = llm.invoke("Argue for. " + state["history"])
    return {"history": state["history"] + said.content, "count": state["count"] + 1}


def bear(state: Debate) -> dict:
    said = llm.invoke("Argue against. " + state["history"])
    return {"history": state["history"] + said.content, "count": state["count"] + 1}


class Rules:
    def __init__(self, max_rounds: int = 2):
        self.max_rounds = max_rounds

    def next_speaker(self, state: Debate) -> str:
        if state["count"] >= 2 * self.max_rounds:
            return "judge"
        return "bear" if state["count"] % 2 else "bull"


def judge(state: Debate) -> dict:
    return {"history": llm.invoke("Decide. " + state["history"]).content}


rules = Rules(max_rounds=3)
g = StateGraph(Debate)
g.add_node("bull", bull)
g.add_node("bear", bear)
g.add_node("judge", judge)
g.set_entry_point("bull")
g.add_conditional_edges("bull", rules.next_speaker, {"bear": "bear", "judge": "judge"})
g.add_conditional_edges("bear", rules.next_speaker, {"bull": "bull", "judge": "judge"})
g.add_edge("judge", END)
print(g.compile().invoke({"history": "", "count": 0}))
