"""Which model is asked, and with what, depends on the state."""
import json
from typing import TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

quick = ChatOpenAI(model="gpt-4o-mini")
careful = ChatOpenAI(model="gpt-4o", temperature=0)


class State(TypedDict):
    question: str
    answer: str
    verdict: str


def answer(state: State):
    if len(state["question"]) < 20:
        model = quick
    else:
        model = careful
    messages = [SystemMessage(content="Answer.")]
    if "why" in state["question"].lower():
        messages.append(HumanMessage(content="Give reasons."))
    messages.append(HumanMessage(content=state["question"]))
    return {"answer": model.invoke(messages).content}


def judge(state: State):
    model = careful if "because" in state["answer"] else quick
    return {"verdict": model.invoke(f"Is this right: {state['answer']}").content}


builder = StateGraph(State)
builder.add_node("answer", answer)
builder.add_node("judge", judge)
builder.add_edge(START, "answer")
builder.add_edge("answer", "judge")
builder.add_edge("judge", END)
graph = builder.compile()

if __name__ == "__main__":
    print(json.dumps(graph.invoke({"question": "Why is the sky blue at noon?"})))
