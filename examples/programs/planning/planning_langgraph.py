"""Planning as a graph with a cycle."""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

model = ChatOpenAI(model="gpt-5-mini")


class Task(BaseModel):
    id: str
    title: str
    days: int = Field(gt=0, le=30)
    after: list[str]


class Tasks(BaseModel):
    tasks: list[Task] = Field(max_length=20)


class State(TypedDict, total=False):
    goal: str
    days: int
    rounds: int
    why: str | None
    slots: list[dict]


def schedule(tasks: list[Task]) -> list[dict]:
    slots: list[dict] = []
    for _ in tasks:
        for task in tasks:
            ends = {slot["id"]: slot["to"] for slot in slots}
            if task.id not in ends and all(a in ends for a in task.after):
                start = max((ends[a] for a in task.after), default=0)
                slots.append({"id": task.id, "title": task.title, "from": start, "to": start + task.days})
    return slots


def objection(tasks: list[Task], slots: list[dict], days: int) -> str | None:
    placed = {slot["id"] for slot in slots}
    if stuck := [task.id for task in tasks if task.id not in placed]:
        return f"these wait for each other or for nothing: {', '.join(stuck)}"
    needed = max((slot["to"] for slot in slots), default=0)
    return f"it takes {needed} days" if needed > days else None


def propose(state: State) -> State:
    planner = model.with_structured_output(Tasks).with_retry(stop_after_attempt=2)
    task = f"Plan this in at most {state['days']} days: {state['goal']}."
    tasks = planner.invoke([
        ("system", "You plan projects. Tasks are small, and wait only for what they need."),
        ("user", f"{task} What was wrong with the last plan: {state['why']}"),
    ]).tasks
    slots = schedule(tasks)
    return {"slots": slots, "why": objection(tasks, slots, state["days"]), "rounds": state["rounds"] + 1}


def route(state: State) -> str:
    return "propose" if state["why"] and state["rounds"] < 3 else END


graph = StateGraph(State)
graph.add_node("propose", propose)
graph.add_edge(START, "propose")
graph.add_conditional_edges("propose", route, ["propose", END])
app = graph.compile()


def main(goal: str, days: int) -> dict:
    state = app.invoke({"goal": goal, "days": days, "why": None, "rounds": 0})
    if state["why"]:
        return {"Impossible": {"why": state["why"]}}
    slots = sorted(state["slots"], key=lambda slot: slot["from"])
    return {"Planned": {"slots": slots, "days": max((slot["to"] for slot in slots), default=0)}}
