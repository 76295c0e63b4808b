"""`examples/triage.agent` in a program of Python: types in and out, a model of one's own, and what it may cost.

python examples/library/triage.py
"""

import asyncio
import enum
from dataclasses import dataclass
from pathlib import Path

import entail


class Category(enum.Enum):
    BILLING = "billing"
    TECHNICAL = "technical"
    ACCOUNT = "account"
    OTHER = "other"


@dataclass
class Sorted:
    category: Category
    urgency: float
    route: str


async def words(call: entail.Call) -> str:
    """A model that looks for words."""
    category = "billing" if "charged" in call.text else "other"
    return f'{{"category": "{category}", "urgency": 3, "summary": "{category}"}}'


async def main() -> None:
    program = entail.load(Path(__file__).parents[1] / "triage.agent")
    print(f"at most {program.cost().model_calls.most} calls of models")
    found = await program.run({"ticket": "I was charged twice."}, model=words, output=Sorted)
    print(f"{found.category}, urgency {found.urgency}: {found.route}")
    assert found == Sorted(Category.BILLING, 3, "finance/BILLING")


if __name__ == "__main__":
    asyncio.run(main())
