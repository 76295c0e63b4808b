"""Planning: the program around the function of planning.baml."""

from baml_client.sync_client import b
from baml_client.types import Task


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


def main(goal: str, days: int) -> dict:
    why = None
    for _ in range(3):
        tasks = b.Propose(goal, days, why).tasks
        slots = schedule(tasks)
        why = objection(tasks, slots, days)
        if why is None:
            slots.sort(key=lambda slot: slot["from"])
            return {"Planned": {"slots": slots, "days": max((slot["to"] for slot in slots), default=0)}}
    return {"Impossible": {"why": why}}
