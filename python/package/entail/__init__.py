"""Programs of LLM agents: load, check, lint, cost, run.

    import asyncio, entail

    program = entail.load("triage.agent")
    print(program.cost())
    print(asyncio.run(program.run({"ticket": "I was charged twice"}, model="gpt-4.1-mini")))

A tool is a function of Python, sync or async; its annotations are compared with the tool's declaration before a run:

    async def lookup(order: int) -> str: ...

    await program.run({"ticket": "…"}, tools=[lookup])
"""

import atexit

from entail import _entail
from entail._entail import VERSION as __version__
from entail._found import Error, Finding, Place, ProgramError, RunError
from entail._model import Call, Model, Reply
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
    "Interval",
    "Model",
    "Pipeline",
    "Place",
    "Program",
    "ProgramError",
    "Reply",
    "Report",
    "RunError",
    "Tool",
    "Usage",
    "__version__",
    "from_source",
    "lint",
    "load",
    "tool",
]
