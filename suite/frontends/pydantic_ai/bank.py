"""A bank's help desk: tools by decorators, dynamic instructions, a typed answer, a limit of requests."""
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, UsageLimits


@dataclass
class Deps:
    customer: int


class Answer(BaseModel):
    text: str
    block_card: bool


agent = Agent(
    "openai:gpt-4.1",
    deps_type=Deps,
    output_type=Answer,
    instructions="You help customers of a bank.",
    model_settings={"temperature": 0.2},
)


@agent.instructions
async def about_customer(ctx: RunContext[Deps]) -> str:
    return f"The customer's number is {ctx.deps.customer}."


@agent.tool
async def balance(ctx: RunContext[Deps], pending: bool) -> str:
    """Returns the balance of the customer.

    Args:
        pending: With what is not booked yet.
    """
    return "12"


@agent.tool_plain(name="day", requires_approval=True)
def today() -> str:
    """Returns the date."""
    return "2026-11-27"


def main(question: str) -> str:
    result = agent.run_sync(question, deps=Deps(7), usage_limits=UsageLimits(request_limit=4))
    return result.output.text
