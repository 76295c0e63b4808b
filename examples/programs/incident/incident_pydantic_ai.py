"""Incident response with pydantic-ai."""

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.usage import UsageLimits
from world import call

MODEL = "openai-chat:gpt-5-mini"
REMEDIES = ["restart", "roll_back", "scale_up"]


class Cause(BaseModel):
    finding: str
    remedy: str
    certain: bool


on_call = Agent(MODEL, output_type=Cause, instructions="You find out what is wrong with a service.")
scribe = Agent(MODEL, instructions="You write reports of incidents in one sentence.")


@on_call.tool_plain
def logs(service: str, lines: int) -> list[str]:
    """The last lines of the log of a service."""
    return call("logs", service=service, lines=lines)


@on_call.tool_plain
def numbers(service: str) -> dict:
    """Errors a minute and the load of a service."""
    return call("numbers", service=service)


def investigate(service: str, alert: str) -> Cause:
    task = f"{alert} at {service}. What is wrong? `remedy` is restart, roll_back or scale_up."
    try:
        return on_call.run_sync(task, usage_limits=UsageLimits(request_limit=6)).output
    except Exception as why:
        return Cause(finding=str(why), remedy="none", certain=False)


def main(service: str, alert: str) -> dict:
    cause = investigate(service, alert)
    done = "a person was called"
    if cause.certain and cause.remedy in REMEDIES:
        call("carry_out", service=service, remedy=cause.remedy)
        done = cause.remedy
    else:
        call("page_person", service=service, text=cause.finding)
    seen = call("numbers", service=service)
    try:
        text = scribe.run_sync(f"Report: {service}, {cause.finding}, {done}.").output
    except Exception:
        text = f"{service}: {done}"
    healthy = seen["errors"] < 5 and seen["load"] < 0.9
    return {"service": service, "done": done, "healthy": healthy, "text": text}
