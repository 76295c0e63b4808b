"""What type checkers see of the package: a mistake that `mypy --strict` did not find would be an unused `type: ignore`, which is an error."""

from __future__ import annotations

from dataclasses import dataclass

import entail


@dataclass
class Title:
    title: str


async def typed(program: entail.Program) -> list[str]:
    found: Title = await program.run({"topic": "bees"}, output=Title, max_calls=3)
    again: Title = program.run_sync({"topic": "bees"}, output=Title, model="local")
    report: entail.Report = await program.report({"topic": "bees"}, tools=[len], max_usd="0.10")
    await program.run({}, max_cals=3)  # type: ignore[call-overload]
    await program.run({}, timeout="soon")  # type: ignore[call-overload]
    wrong: int = await program.run({}, output=Title)  # type: ignore[arg-type]
    report.usage.model_calls = wrong  # type: ignore[misc]
    return [found.title, again.title, report.run]
