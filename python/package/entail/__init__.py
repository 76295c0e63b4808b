"""Programs of LLM agents: load, check, lint, cost, run.

    import asyncio, entail

    program = entail.load("triage.agent")
    print(program.cost())
    print(asyncio.run(program.run({"ticket": "I was charged twice"}, model="gpt-4.1-mini")))

A tool is a function of Python, sync or async; its annotations are compared with the tool's declaration before a run:

    async def lookup(order: int) -> str: ...

    await program.run({"ticket": "…"}, tools=[lookup])

A model writes a plan that calls tools, and what the tools read decides nothing that the policy does not admit:

    run = entail.plan("Pay the bill", tools=[read_file, pay], policy="policy.toml", planner="gpt-4.1", quarantine="gpt-4.1-mini")
    print((await run.run()).answer)

An assistant that runs elsewhere is guarded: each call of a tool is checked at the label of what its model has read:

    session = entail.Guard("policy.toml").session()
    call = session.check("send", {"to": "bob"})
    call.result(send(to="bob"))
"""

import atexit

from entail import _entail
from entail._entail import VERSION as __version__
from entail._found import Error, Finding, Place, ProgramError, RunError
from entail._guard import Guard, GuardCall, GuardRefused, GuardSession, GuardWithheld
from entail._model import Call, Model, Reply
from entail._plan import Flow, PlanResult, PlanRun, Question, ToldError, ToolCalled, plan
from entail._program import Approval, Cost, Interval, Pipeline, Program, Report, Usage, from_source, lint, load
from entail._tools import Tool, tool

# What another build of it found out is not used again.
_entail.carried_by(_entail.__file__)
# No thread of the native half is in Python when that ends.
atexit.register(_entail.shut_down)

__all__ = [
    "Approval",
    "Call",
    "Cost",
    "Error",
    "Finding",
    "Flow",
    "Guard",
    "GuardCall",
    "GuardRefused",
    "GuardSession",
    "GuardWithheld",
    "Interval",
    "Model",
    "Pipeline",
    "Place",
    "PlanResult",
    "PlanRun",
    "Program",
    "ProgramError",
    "Question",
    "Reply",
    "Report",
    "RunError",
    "ToldError",
    "Tool",
    "ToolCalled",
    "Usage",
    "__version__",
    "from_source",
    "lint",
    "load",
    "plan",
    "tool",
]
