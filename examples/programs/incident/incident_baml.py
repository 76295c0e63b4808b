"""Incident response: the loop of the agent and the program around the functions of incident.baml."""

import json

from baml_client.sync_client import b
from baml_client.types import Cause, Turn
from world import call

REMEDIES = ["restart", "roll_back", "scale_up"]
MAX_STEPS = 6


def investigate(service: str, alert: str) -> Cause:
    task = f"{alert} at {service}. What is wrong? `remedy` is restart, roll_back or scale_up."
    turns = [Turn(role="user", text=task)]
    for _ in range(MAX_STEPS):
        step = b.Step(turns)
        if isinstance(step, Cause):
            return step
        turns.append(Turn(role="assistant", text=step.model_dump_json()))
        try:
            result = call(step.tool, **step.model_dump(exclude={"tool"}))
        except Exception as why:
            result = {"error": str(why)}
        turns.append(Turn(role="user", text=json.dumps(result)))
    raise RuntimeError("too many steps")


def main(service: str, alert: str) -> dict:
    try:
        cause = investigate(service, alert)
    except Exception as why:
        cause = Cause(finding=str(why), remedy="none", certain=False)
    done = "a person was called"
    if cause.certain and cause.remedy in REMEDIES:
        call("carry_out", service=service, remedy=cause.remedy)
        done = cause.remedy
    else:
        call("page_person", service=service, text=cause.finding)
    seen = call("numbers", service=service)
    try:
        text = b.Report(service, cause.finding, done)
    except Exception:
        text = f"{service}: {done}"
    healthy = seen["errors"] < 5 and seen["load"] < 0.9
    return {"service": service, "done": done, "healthy": healthy, "text": text}
